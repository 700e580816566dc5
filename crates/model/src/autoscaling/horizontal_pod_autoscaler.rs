//! HorizontalPodAutoscalers: whole, because their status is PUT.

use steersman_base::{Condition, Istr, LabelSelector, Meta, Quantity, Time};

use crate::conditions::HorizontalPodAutoscalerCondition;
use crate::view;
use crate::wire::Unique;

view! {
    /// A HorizontalPodAutoscaler.
    pub struct HorizontalPodAutoscalerView: Serialize
        for namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
    {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: HorizontalPodAutoscalerSpec = 2,
        /// The status.
        status: HorizontalPodAutoscalerStatus = 3,
    }
}

view! {
    /// The spec of a HorizontalPodAutoscaler.
    pub struct HorizontalPodAutoscalerSpec: Serialize {
        /// The object that is scaled.
        scale_target_ref: TargetReference = 1,
        /// The lower limit; absent means one.
        min_replicas: Option<i32> = 2,
        /// The upper limit.
        max_replicas: i32 = 3,
        /// The metrics; the largest proposal counts.
        metrics: Box<[MetricSpec]> = 4,
        /// The rules of scaling up and down.
        behavior: Option<Box<Behavior>> = 5,
    }
}

view! {
    /// A reference to an object of the same namespace.
    #[derive(Eq, Hash)]
    pub struct TargetReference: Serialize {
        /// The kind.
        kind: Istr = 1,
        /// The name.
        name: Istr as Unique = 2,
        /// Group and version.
        api_version: Istr = 3,
    }
}

view! {
    /// A metric to scale by: the field that its type names.
    pub struct MetricSpec: Serialize {
        /// `Object`, `Pods`, `Resource`, `ContainerResource` or `External`.
        type_ "type": Istr = 1,
        /// A metric of one object.
        object: Option<Box<ObjectMetricSource>> = 2,
        /// A metric of every pod.
        pods: Option<Box<PodsMetricSource>> = 3,
        /// A resource of every pod.
        resource: Option<Box<ResourceMetricSource>> = 4,
        /// A metric of nothing in the cluster.
        external: Option<Box<ExternalMetricSource>> = 5,
        /// A resource of one container of every pod.
        container_resource: Option<Box<ContainerResourceMetricSource>> = 7,
    }
}

view! {
    /// A metric of one object.
    pub struct ObjectMetricSource: Serialize {
        /// The object.
        described_object: TargetReference = 1,
        /// The target.
        target: MetricTarget = 2,
        /// The metric.
        metric: MetricIdentifier = 3,
    }
}

view! {
    /// A metric of every pod.
    pub struct PodsMetricSource: Serialize {
        /// The metric.
        metric: MetricIdentifier = 1,
        /// The target.
        target: MetricTarget = 2,
    }
}

view! {
    /// A resource of every pod.
    pub struct ResourceMetricSource: Serialize {
        /// The name of the resource.
        name: Istr = 1,
        /// The target.
        target: MetricTarget = 2,
    }
}

view! {
    /// A resource of one container of every pod.
    pub struct ContainerResourceMetricSource: Serialize {
        /// The name of the resource.
        name: Istr = 1,
        /// The target.
        target: MetricTarget = 2,
        /// The name of the container.
        container: Istr = 3,
    }
}

view! {
    /// A metric of nothing in the cluster.
    pub struct ExternalMetricSource: Serialize {
        /// The metric.
        metric: MetricIdentifier = 1,
        /// The target.
        target: MetricTarget = 2,
    }
}

view! {
    /// The name of a metric, and the series that are meant.
    pub struct MetricIdentifier: Serialize {
        /// The name.
        name: Istr = 1,
        /// The series that are meant.
        selector: Option<LabelSelector> = 2,
    }
}

view! {
    /// The target of a metric.
    pub struct MetricTarget: Serialize {
        /// `Utilization`, `Value` or `AverageValue`.
        type_ "type": Istr = 1,
        /// The value of the metric.
        value: Option<Quantity> = 2,
        /// The value per pod.
        average_value: Option<Quantity> = 3,
        /// The percentage of the requested resources.
        average_utilization: Option<i32> = 4,
    }
}

view! {
    /// The rules of scaling in both directions.
    pub struct Behavior: Serialize {
        /// The rules of scaling up.
        scale_up: Option<ScalingRules> = 1,
        /// The rules of scaling down.
        scale_down: Option<ScalingRules> = 2,
    }
}

view! {
    /// The rules of scaling in one direction.
    pub struct ScalingRules: Serialize {
        /// `Max`, `Min` or `Disabled`.
        select_policy: Option<Istr> = 1,
        /// The limits.
        policies: Box<[ScalingPolicy]> = 2,
        /// The number of seconds for which earlier recommendations count.
        stabilization_window_seconds: Option<i32> = 3,
        /// The deviation from the target that is ignored.
        tolerance: Option<Quantity> = 4,
    }
}

view! {
    /// A limit of the change in a period.
    #[derive(Eq, Hash)]
    pub struct ScalingPolicy: Serialize {
        /// `Pods` or `Percent`.
        type_ "type": Istr = 1,
        /// The number, or the percentage.
        value: i32 = 2,
        /// The period.
        period_seconds: i32 = 3,
    }
}

view! {
    /// The status of a HorizontalPodAutoscaler.
    pub struct HorizontalPodAutoscalerStatus: Serialize {
        /// The generation that this is about.
        observed_generation: Option<i64> = 1,
        /// The time at which the number of pods was last changed.
        last_scale_time: Option<Time> = 2,
        /// The number of pods when it was last read.
        current_replicas: i32 = 3,
        /// The number of pods that was last wanted.
        desired_replicas: i32 = 4,
        /// The metrics when they were last read.
        current_metrics: Box<[MetricStatus]> = 5,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<HorizontalPodAutoscalerCondition> = 6,
    }
}

view! {
    /// A metric when it was last read: the field that its type names.
    pub struct MetricStatus: Serialize {
        /// `Object`, `Pods`, `Resource`, `ContainerResource` or `External`; empty if the metric could not be read.
        type_ "type": Istr = 1,
        /// A metric of one object.
        object: Option<Box<ObjectMetricStatus>> = 2,
        /// A metric of every pod.
        pods: Option<Box<PodsMetricStatus>> = 3,
        /// A resource of every pod.
        resource: Option<Box<ResourceMetricStatus>> = 4,
        /// A metric of nothing in the cluster.
        external: Option<Box<ExternalMetricStatus>> = 5,
        /// A resource of one container of every pod.
        container_resource: Option<Box<ContainerResourceMetricStatus>> = 7,
    }
}

view! {
    /// A metric of one object, when it was last read.
    pub struct ObjectMetricStatus: Serialize {
        /// The metric.
        metric: MetricIdentifier = 1,
        /// The value.
        current: MetricValue = 2,
        /// The object.
        described_object: TargetReference = 3,
    }
}

view! {
    /// A metric of every pod, when it was last read.
    pub struct PodsMetricStatus: Serialize {
        /// The metric.
        metric: MetricIdentifier = 1,
        /// The value.
        current: MetricValue = 2,
    }
}

view! {
    /// A resource of every pod, when it was last read.
    pub struct ResourceMetricStatus: Serialize {
        /// The name of the resource.
        name: Istr = 1,
        /// The value.
        current: MetricValue = 2,
    }
}

view! {
    /// A resource of one container of every pod, when it was last read.
    pub struct ContainerResourceMetricStatus: Serialize {
        /// The name of the resource.
        name: Istr = 1,
        /// The value.
        current: MetricValue = 2,
        /// The name of the container.
        container: Istr = 3,
    }
}

view! {
    /// A metric of nothing in the cluster, when it was last read.
    pub struct ExternalMetricStatus: Serialize {
        /// The metric.
        metric: MetricIdentifier = 1,
        /// The value.
        current: MetricValue = 2,
    }
}

view! {
    /// The value of a metric.
    #[derive(Eq, Hash)]
    pub struct MetricValue: Serialize {
        /// The value of the metric.
        value: Option<Quantity> = 1,
        /// The value per pod.
        average_value: Option<Quantity> = 2,
        /// The percentage of the requested resources.
        average_utilization: Option<i32> = 3,
    }
}
