//! CSIStorageCapacities: `pkg/apis/storage/validation/validation.go`.

use steersman_base::validation::dns1123_subdomain;

use crate::field::Path;
use crate::kinds::shared::check::{immutable, immutable_text, label_selector, non_negative_quantity, problems};
use crate::kinds::shared::json::text;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;

/// The rules of CSIStorageCapacities.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
        let topology = Path::new("nodeTopology");
        let class = Path::new("storageClassName");
        label_selector(&new["nodeTopology"], &topology, errors);
        let name = text(&new["storageClassName"]);
        problems(name, dns1123_subdomain(name), &class, errors);
        non_negative_quantity(&new["capacity"], &Path::new("capacity"), errors);
        if let Some(old) = old {
            immutable(&new["nodeTopology"], &old["nodeTopology"], &topology, errors);
            immutable_text(&new["storageClassName"], &old["storageClassName"], &class, errors);
        }
    })
    .rechecked()
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::DEFAULT });
