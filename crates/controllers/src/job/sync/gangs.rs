//! The Workload and the PodGroup of a Job.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::{Index, Selection};
use steersman_model::batch::JobView;
use steersman_model::core::PodView;
use steersman_model::scheduling::{PodGroupView, WorkloadView};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::writer::{Behalf, Outcome};
use steersman_runtime::{Context, Error, Patch, WriteError};

use super::Why;
use crate::job::gang::{self, Described, Managed};

const WORKLOADS: &Resource = &WorkloadView::RESOURCE;
const GROUPS: &Resource = &PodGroupView::RESOURCE;

/// The caches of Workloads and PodGroups.
pub(in crate::job) struct Gangs {
    pub(in crate::job) workloads: Children<WorkloadView>,
    pub(in crate::job) groups: Children<PodGroupView>,
    /// Workloads by what they describe.
    pub(in crate::job) by_described: Index<Described, WorkloadView>,
}

/// One pass over one Job.
struct Look<'a> {
    gangs: &'a Gangs,
    cx: &'a Context,
    write: &'a Behalf<'a>,
    job: &'a JobView,
    /// Whether what is absent is created.
    creates: bool,
}

/// A template of a Workload, from which the group is made.
struct Origin {
    workload: Meta,
    template: Value,
    /// Whether the Workload is the Job's own.
    is_own: bool,
}

// === impl Gangs ===

impl Gangs {
    /// Returns the name of the group that new pods of a Job are in, if they are in one. Creates it if the Job is new.
    pub(super) async fn ensure(
        &self,
        cx: &Context,
        write: &Behalf<'_>,
        job: &JobView,
        pods: &[Arc<PodView>],
    ) -> Result<Option<Istr>, Error> {
        let creates = gang::is_new(job, pods) && !job.meta().is_terminating();
        let look = Look { gangs: self, cx, write, job, creates };
        match gang::managed(job) {
            Managed::Nothing => Ok(None),
            Managed::Both => look.own().await,
            Managed::GroupOf { template } => look.delegated(&template).await,
        }
    }
}

// === impl Look ===

impl Look<'_> {
    /// A Job of its own: it has a Workload and a group.
    async fn own(&self) -> Result<Option<Istr>, Error> {
        match self.own_origin().await? {
            Some(origin) => self.group(&origin).await,
            None => Ok(None),
        }
    }

    /// Returns the template in the Workload of the Job. The Workload is created if there is none.
    async fn own_origin(&self) -> Result<Option<Origin>, Error> {
        let Self { gangs, cx, job, .. } = *self;
        let mut own = gangs.workloads.of_any(cx, &job.meta().namespace, &[job.meta()]).await?;
        own.retain(|workload| gang::describes(workload, job));
        let wanted = gang::template(job);
        match &*own {
            [] if !self.creates => Ok(None),
            [] => {
                let why = Why::NoWorkload { job: job.meta().name.clone() };
                let workload = self.create(WORKLOADS, &gang::new_workload(job), &why).await?;
                Ok(workload.map(|workload| Origin { workload, template: wanted, is_own: true }))
            }
            [workload] => {
                let [template] = &*workload.spec.pod_group_templates else {
                    let count = workload.spec.pod_group_templates.len();
                    let text = format!("Workload {} of the Job has {count} templates, not one", workload.meta().key());
                    return Err(Error::message(text));
                };
                let mut template: Value = serde_json::from_str(template.as_str()).unwrap_or_default();
                if let (Some(have), Some(want)) = (gang::min_count(&template), gang::min_count(&wanted)) {
                    self.resize_workload(workload, have, want).await?;
                    template["schedulingPolicy"]["gang"]["minCount"] = json!(want);
                }
                Ok(Some(Origin { workload: workload.meta().clone(), template, is_own: true }))
            }
            // It is not known which one is meant.
            _ => Ok(None),
        }
    }

    /// A Job whose parent has the Workload.
    async fn delegated(&self, template: &str) -> Result<Option<Istr>, Error> {
        let Some(parent) = gang::delegating(self.job) else { return Ok(None) };
        let Some(workload) = self.parents_workload(&parent).await? else { return Ok(None) };
        let Some(template) = gang::template_of(&workload, template) else { return Ok(None) };
        self.group(&Origin { workload: workload.meta().clone(), template, is_own: false }).await
    }

    /// Returns the Workload of the parent. The cache may not show it yet when the parent has just created both: pods that
    /// are created without a group are never in one.
    async fn parents_workload(&self, parent: &Described) -> Result<Option<Arc<WorkloadView>>, Error> {
        let cached = self.gangs.by_described.get(parent).into_iter().next();
        if cached.is_some() || !self.creates {
            return Ok(cached);
        }
        let live = self.cx.live.list::<WorkloadView>(Selection::namespace(&self.job.meta().namespace)).await?;
        Ok(live.into_iter().find(|workload| gang::described(workload).as_ref() == Some(parent)))
    }

    /// Returns the name of the group of the Job. It is created if there is none, and has the size of the template.
    async fn group(&self, origin: &Origin) -> Result<Option<Istr>, Error> {
        let Self { gangs, cx, job, .. } = *self;
        let mut own = gangs.groups.of_any(cx, &job.meta().namespace, &[job.meta()]).await?;
        own.retain(|group| gang::is_of(group, &origin.workload));
        match &*own {
            [] if !self.creates => Ok(None),
            [] => {
                let body = gang::new_group(job, &origin.workload, &origin.template, origin.is_own);
                let why = Why::NoGroup { job: job.meta().name.clone() };
                Ok(self.create(GROUPS, &body, &why).await?.map(|group| group.name))
            }
            // Of a parent's Workload the first one counts, as upstream.
            [group, rest @ ..] if rest.is_empty() || !origin.is_own => {
                self.resize_group(group, gang::min_count(&origin.template)).await?;
                Ok(Some(group.meta().name.clone()))
            }
            _ => Ok(None),
        }
    }

    async fn resize_workload(&self, workload: &WorkloadView, have: i32, want: i32) -> Result<(), Error> {
        if have == want {
            return Ok(());
        }
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": workload.meta().uid },
            { "op": "replace", "path": "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", "value": want },
        ]);
        self.patch(WORKLOADS, &workload.meta().key(), Patch::Json(&patch), have, want).await
    }

    async fn resize_group(&self, group: &PodGroupView, want: Option<i32>) -> Result<(), Error> {
        let (Some(have), Some(want)) = (gang::min_count_of(group), want) else { return Ok(()) };
        if have == want {
            return Ok(());
        }
        let gang = json!({ "minCount": want });
        let patch =
            json!({ "metadata": { "uid": group.meta().uid }, "spec": { "schedulingPolicy": { "gang": gang } } });
        self.patch(GROUPS, &group.meta().key(), Patch::Merge(&patch), have, want).await
    }

    /// Creates an object; `None` if its namespace is terminating.
    async fn create(&self, resource: &Resource, object: &Value, why: &Why) -> Result<Option<Meta>, Error> {
        match self.write.create(resource, object.to_string().into_bytes(), why).await {
            Ok(created) => Ok(Some(created)),
            Err(WriteError::NamespaceTerminating) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn patch(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        patch: Patch<'_>,
        have: i32,
        want: i32,
    ) -> Result<(), Error> {
        let patched = self.write.patch(resource, key, patch, &Why::GangSize { have, want }).await;
        Ok(patched.ok_if_gone().ok_if_replaced()?)
    }
}
