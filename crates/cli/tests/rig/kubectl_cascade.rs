//! Real kubectl against `steersman up`: what goes with what, in each cascade mode and with a namespace.

use serde_json::{Value, json};
use steersman_testing::Failure;

use crate::up::Up;

async fn with_web() -> Result<Up, Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web --replicas=3").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    Ok(up)
}

fn owners(list: &Value) -> usize {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter(|item| !item["metadata"]["ownerReferences"].is_null()).count()
}

#[tokio::test]
async fn in_the_background_dependents_go_after_the_owner() -> Result<(), Failure> {
    let up = with_web().await?;
    up.kubectl("run bystander --image=example/web --labels=app=web,pod-template-hash=none").await?;
    up.kubectl("delete deployment web").await?;
    assert!(up.refused("get deployment web").await?.contains("NotFound"));
    up.until_count("rs", 0).await?;
    up.until_count("pods", 1).await?;
    assert_eq!(up.names("pods").await?, ["pod/bystander"], "what nobody owns stays");
    up.down().await
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() -> Result<(), Failure> {
    let up = with_web().await?;
    up.kubectl("delete deployment web --cascade=foreground --timeout=40s").await?;
    // kubectl waits until the owner is gone: by then everything else is.
    assert_eq!(up.names("rs,pods").await?, Vec::<String>::new());
    up.down().await
}

#[tokio::test]
async fn orphans_stay_and_are_adopted_by_the_next_owner() -> Result<(), Failure> {
    let up = with_web().await?;
    let sets = up.names("rs").await?;
    let pods = up.names("pods").await?;
    up.kubectl("delete deployment web --cascade=orphan --timeout=40s").await?;
    assert_eq!((up.names("rs").await?, up.names("pods").await?), (sets.clone(), pods.clone()));
    assert_eq!(owners(&up.json("get rs").await?), 0, "the ReplicaSet is nobody's");
    assert_eq!(owners(&up.json("get pods").await?), 3, "and the pods are still the ReplicaSet's");

    up.kubectl(&format!("delete {} --cascade=orphan --timeout=40s", sets[0])).await?;
    assert_eq!(up.names("pods").await?, pods);
    assert_eq!(owners(&up.json("get pods").await?), 0);

    up.kubectl("create deployment web --image=example/web --replicas=3").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    let set = up.json("get rs").await?["items"][0].clone();
    assert_eq!(set["spec"]["replicas"], 3);
    assert_eq!(
        json!(format!("replicaset.apps/{}", set["metadata"]["name"].as_str().unwrap_or_default())),
        json!(sets[0])
    );
    assert_eq!(up.names("pods").await?, pods, "the pods of before are taken, and no other is made");
    assert_eq!(owners(&up.json("get pods").await?), 3);
    up.down().await
}

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it_and_nothing_else() -> Result<(), Failure> {
    let up = with_web().await?;
    up.kubectl("create namespace shop").await?;
    up.wait("serviceaccount/default -n shop --for=create").await?;
    up.wait("configmap/kube-root-ca.crt -n shop --for=create").await?;
    up.kubectl("-n shop create deployment web --image=example/web --replicas=3").await?;
    up.kubectl("-n shop expose deployment web --port=80").await?;
    up.kubectl("-n shop create configmap settings --from-literal=a=b").await?;
    up.kubectl("-n shop create secret generic keys --from-literal=a=b").await?;
    up.kubectl("-n shop create role reader --verb=get --resource=pods").await?;
    up.kubectl("-n shop create job once --image=example/web").await?;
    up.kubectl("-n shop create quota small --hard=pods=100").await?;
    up.kubectl("-n shop run alone --image=example/web").await?;
    let crd = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: cakes.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: cakes, singular: cake, kind: Cake, listKind: CakeList }
  versions:
    - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
";
    up.kubectl_with("apply -f -", crd).await?;
    up.wait("crd/cakes.example.com --for=condition=Established").await?;
    let cake = "apiVersion: example.com/v1\nkind: Cake\nmetadata: { name: plum, namespace: shop }\n";
    up.kubectl_with("create -f -", cake).await?;
    up.kubectl("-n shop rollout status deployment/web --timeout=40s").await?;

    up.kubectl("delete namespace shop --timeout=40s").await?;
    assert!(up.refused("get namespace shop").await?.contains("NotFound"));
    let left = up
        .names("pods,deployments,services,configmaps,secrets,roles,jobs,cakes.example.com,endpointslices -n shop")
        .await?;
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(up.names("pods").await?.len(), 3, "other namespaces are not touched");
    let refused = up.try_kubectl("-n shop create configmap late", "").await?.unwrap_err();
    assert!(refused.contains("not found"), "{refused}");
    up.down().await
}

#[tokio::test]
async fn a_namespace_that_cannot_go_says_what_keeps_it() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0"]).await?;
    up.kubectl("create namespace shop").await?;
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: held, namespace: shop, finalizers: [example.com/hold] }\n";
    up.kubectl_with("create -f -", map).await?;
    up.kubectl("delete namespace shop --wait=false").await?;
    up.wait("namespace/shop --for=condition=NamespaceFinalizersRemaining").await?;
    let conditions = up.json("get namespace shop").await?["status"]["conditions"].clone();
    let conditions = conditions.to_string();
    for want in [
        "Some resources are remaining: configmaps. has 1 resource instances",
        "example.com/hold in 1 resource instances",
    ] {
        assert!(conditions.contains(want), "{want:?} is not in {conditions}");
    }
    up.kubectl(r#"-n shop patch cm held --type=merge -p {"metadata":{"finalizers":null}}"#).await?;
    up.wait("namespace/shop --for=delete").await?;
    up.down().await
}
