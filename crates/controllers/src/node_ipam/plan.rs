//! Pure: the ranges of the cluster, from the options, and the patch that gives a node its own.

use ipnet::IpNet;
use serde_json::{Value, json};
use steersman_base::Meta;

use super::Options;

/// The only way to choose ranges that is left.
pub(super) const RANGE_ALLOCATOR: &str = "RangeAllocator";
/// The prefix lengths of the ranges of nodes by default.
const MASK_IPV4: i64 = 24;
const MASK_IPV6: i64 = 64;

/// The ranges of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranges {
    /// The range of each family, and the prefix length of those of nodes.
    pub(super) cluster: Vec<(IpNet, i64)>,
    /// The addresses of services, which no node gets.
    pub(super) services: Vec<IpNet>,
}

/// Options that do not fit together, mostly with upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OptionsError {
    #[error("--cidr-allocator-type is set to {0:?}, and only RangeAllocator works without a cloud provider")]
    Allocator(String),
    #[error("--{flag}: {text:?} is not a range of addresses such as 10.0.0.0/16")]
    NoRange { flag: &'static str, text: String },
    #[error("--{flag}: {count} ranges are not one range, or one of each family")]
    NotDualStack { flag: &'static str, count: usize },
    #[error("usage of --node-cidr-mask-size is not allowed with dual-stack clusters")]
    MaskWithDualStack,
    #[error(
        "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is \
         set. For dual-stack clusters please unset it and use IPFamily specific flags"
    )]
    TwoMasks,
    #[error("usage of --node-cidr-mask-size-{0} is not allowed for a single-stack cluster of the other family")]
    OtherFamily(&'static str),
}

/// Returns the ranges that the options describe.
///
/// # Errors
/// The options do not fit together.
pub(super) fn ranges(options: &Options) -> Result<Ranges, OptionsError> {
    if options.allocator != RANGE_ALLOCATOR {
        return Err(OptionsError::Allocator(options.allocator.clone()));
    }
    let cluster = parse("cluster-cidr", &options.cluster)?;
    let services = if options.services.trim().is_empty() {
        Vec::new()
    } else {
        parse("service-cluster-ip-range", &options.services)?
    };
    let masks = Masks::of(options, &cluster)?;
    let with_mask = |range: IpNet| (range, if is_ipv6(range) { masks.ipv6 } else { masks.ipv4 });
    Ok(Ranges { cluster: cluster.into_iter().map(with_mask).collect(), services })
}

/// Returns the patch that gives a node its ranges. A node that has some keeps them: the server refuses others.
pub(super) fn patch(node: &Meta, ranges: &[IpNet]) -> Value {
    let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    json!({ "metadata": { "uid": node.uid }, "spec": { "podCIDR": texts.first(), "podCIDRs": texts } })
}

struct Masks {
    ipv4: i64,
    ipv6: i64,
}

// === impl Masks ===

impl Masks {
    fn of(options: &Options, cluster: &[IpNet]) -> Result<Self, OptionsError> {
        let Options { mask, mask_ipv4, mask_ipv6, .. } = options;
        let is_dual = cluster.len() > 1;
        let is_ipv6_only = !is_dual && cluster.iter().copied().all(is_ipv6);
        let or = |mask: i64, default: i64| if mask == 0 { default } else { mask };
        match *mask {
            0 if is_dual => {}
            0 if *mask_ipv4 != 0 && is_ipv6_only => return Err(OptionsError::OtherFamily("ipv4")),
            0 if *mask_ipv6 != 0 && !is_ipv6_only => return Err(OptionsError::OtherFamily("ipv6")),
            0 => {}
            _ if is_dual => return Err(OptionsError::MaskWithDualStack),
            _ if *mask_ipv4 != 0 || *mask_ipv6 != 0 => return Err(OptionsError::TwoMasks),
            mask => return Ok(Self { ipv4: mask, ipv6: mask }),
        }
        Ok(Self { ipv4: or(*mask_ipv4, MASK_IPV4), ipv6: or(*mask_ipv6, MASK_IPV6) })
    }
}

fn parse(flag: &'static str, text: &str) -> Result<Vec<IpNet>, OptionsError> {
    let range = |text: &str| {
        let net = text.trim().parse::<IpNet>().map(|net| net.trunc());
        net.map_err(|_| OptionsError::NoRange { flag, text: text.to_owned() })
    };
    let ranges = text.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
    match ranges[..] {
        [_] => Ok(ranges),
        [first, second] if is_ipv6(first) != is_ipv6(second) => Ok(ranges),
        _ => Err(OptionsError::NotDualStack { flag, count: ranges.len() }),
    }
}

fn is_ipv6(range: IpNet) -> bool {
    matches!(range, IpNet::V6(_))
}
