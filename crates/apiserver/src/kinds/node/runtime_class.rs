//! RuntimeClasses: `pkg/apis/node/validation/validation.go`.

use steersman_base::validation::dns1123_label;

use crate::field::{FieldError, Path};
use crate::kinds::core::pod::resources::overhead;
use crate::kinds::core::pod::validation::tolerations;
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{is_set, items, same, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of RuntimeClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
        let handler = text(&new["handler"]);
        let path = Path::new("handler");
        if handler.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            // Checked declaratively upstream, which counts bytes.
            let wrong = dns1123_label(handler).into_iter().map(|problem| problem.replace("63 characters", "63 bytes"));
            problems(handler, wrong.collect(), &path, errors);
        }
        if is_set(&new["overhead"]) {
            overhead(&new["overhead"]["podFixed"], &Path::new("overhead"), errors);
        }
        let scheduling = Path::new("scheduling");
        check::labels(&new["scheduling"]["nodeSelector"], &scheduling.child("nodeSelector"), errors);
        let at = scheduling.child("tolerations");
        let given = items(&new["scheduling"]["tolerations"]);
        for (index, toleration) in given.iter().enumerate() {
            if given[..index].iter().any(|other| same(other, toleration)) {
                errors.push(FieldError::duplicate(&at.index(index), go::show("Toleration", toleration)));
            }
        }
        tolerations(&new["scheduling"]["tolerations"], &at, errors);
        if let Some(old) = old {
            check::immutable_unshown(&new["handler"], &old["handler"], &path, errors);
        }
    })
    .with_strategy(Strategy { create_on_update: true, unconditional_update: false, ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::Text("/handler"), Cell::Age]);
