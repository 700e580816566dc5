//! The context of building one controller of the table.

use std::ops::Deref;

use steersman_base::Meta;
use steersman_informer::SharedInformer;
use steersman_model::{Kind, View};

use super::{BuildContext, Builder};
use crate::children::Children;
use crate::descriptor::{Disabled, Flags, Row};
use crate::live::Live;

/// The context of one controller: the manager's [`BuildContext`] for its account, and the facts of its [`Row`].
///
/// Name, queue, workers, limiter, retries and the source of its events come from the row, not from the controller.
#[derive(Clone, Debug)]
pub struct ControllerContext {
    cx: BuildContext,
    row: Row,
    workers: usize,
}

// === impl ControllerContext ===

impl ControllerContext {
    pub(crate) fn new(mut cx: BuildContext, row: Row, workers: usize) -> Self {
        cx.events = cx.events.for_component(row.component);
        Self { cx, row, workers }
    }

    /// Returns the facts.
    #[must_use]
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Returns the informer of a kind, which all controllers share.
    #[must_use]
    pub fn informer<V: Kind>(&self) -> SharedInformer<V> {
        self.cx.informers.informer::<V>()
    }

    /// Returns the objects of a kind by their controller: own and orphaned ones.
    #[must_use]
    pub fn children<V: Kind>(&self, informer: &SharedInformer<V>) -> Children<V> {
        Children::new(informer)
    }

    /// Returns live reads with the manager's own account, for a controller whose account may write and not read.
    #[must_use]
    pub fn live_as_manager(&self) -> Live {
        Live::new(self.cx.manager.kube_client().clone())
    }

    /// Starts building the controller: its main objects are those of an informer.
    pub fn controller<V: View>(&self, main: &SharedInformer<V>) -> Builder<V> {
        self.another(self.row.name, main)
    }

    /// Starts building the controller without a main kind ([`BuildContext::controller_of_keys`]).
    pub fn controller_of_keys(&self) -> Builder<Meta> {
        self.another_of_keys(self.row.name)
    }

    /// Starts building another queue of the same controller, under a name of its own.
    pub fn another<V: View>(&self, name: &'static str, main: &SharedInformer<V>) -> Builder<V> {
        self.cx.controller_on(name, main).with_row(&self.row, self.workers)
    }

    /// As [`another`](Self::another), without a main kind.
    pub fn another_of_keys(&self, name: &'static str) -> Builder<Meta> {
        self.cx.controller_of_keys(name).with_row(&self.row, self.workers)
    }

    /// Returns the options: those that were set for the manager, or those of the flags.
    pub(crate) fn read_options<O: Clone + Send + Sync + 'static>(
        &self,
        read: fn(&Flags<'_>) -> O,
    ) -> Result<O, Disabled> {
        if let Some(options) = self.cx.options.get::<O>() {
            return Ok(options);
        }
        let source = self.cx.manager.flags();
        let flags = source.as_deref().map_or_else(Flags::defaults, Flags::of);
        let options = read(&flags);
        let problems = flags.problems();
        if problems.is_empty() { Ok(options) } else { Err(Disabled(problems.join("; "))) }
    }
}

impl Deref for ControllerContext {
    type Target = BuildContext;

    fn deref(&self) -> &BuildContext {
        &self.cx
    }
}
