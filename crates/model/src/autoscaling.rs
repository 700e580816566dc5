//! The group `autoscaling`.

mod horizontal_pod_autoscaler;

pub use horizontal_pod_autoscaler::{
    Behavior, ContainerResourceMetricSource, ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus,
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, HorizontalPodAutoscalerView, MetricIdentifier,
    MetricSpec, MetricStatus, MetricTarget, MetricValue, ObjectMetricSource, ObjectMetricStatus, PodsMetricSource,
    PodsMetricStatus, ResourceMetricSource, ResourceMetricStatus, ScalingPolicy, ScalingRules, TargetReference,
};
