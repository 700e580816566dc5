//! What calls cost. Follows cel-go's `checker/cost.go` and extensions, and `apiserver/pkg/cel/library/cost.go`.

use super::{Coster, Estimate, Node};
use crate::ast::{Expr, Kind, Literal};
use crate::types::{Type, TypeKind};

/// Cost of a character of a string, and of a pattern.
const CHAR: f64 = 0.1;
const PATTERN_CHAR: f64 = 0.25;
const ONE: Estimate = Estimate::fixed(1);
/// The longest pattern of a named format, and the longest name of one.
const FORMAT_PATTERN_MAX: f64 = 128.0;
const FORMAT_NAME_MAX: u64 = 64;

/// A call of one overload.
pub(super) struct Called<'n, 'c> {
    pub(super) function: &'n str,
    pub(super) overload: &'n str,
    pub(super) target: Option<&'n Node<'c>>,
    pub(super) args: &'n [Node<'c>],
    pub(super) costs: &'n [Estimate],
}

/// The cost of a call, and the size of its result if it is known.
#[derive(Clone, Copy)]
pub(super) struct Estimated {
    pub(super) cost: Estimate,
    pub(super) size: Option<Estimate>,
}

fn of(cost: Estimate) -> Option<Estimated> {
    Some(Estimated { cost, size: None })
}

fn sized(cost: Estimate, size: Estimate) -> Option<Estimated> {
    Some(Estimated { cost, size: Some(size) })
}

impl<'c> Coster<'c> {
    pub(super) fn function_cost(&mut self, expr: &Expr, called: &Called<'_, 'c>) -> Estimated {
        let sum = called.costs.iter().fold(Estimate::ZERO, |sum, cost| sum.add(*cost));
        let declared = self.extension(called).or_else(|| self.kubernetes(called));
        if let Some(declared) = declared {
            return Estimated { cost: declared.cost.add(sum), ..declared };
        }
        self.standard(expr, called, sum).unwrap_or(Estimated { cost: ONE.add(sum), size: None })
    }

    fn sized(&self, node: &Node<'_>) -> Estimate {
        node.size.or_else(|| self.size_at(&node.path)).unwrap_or(Estimate::UNKNOWN)
    }

    /// Costs that cel-go's extensions of lists and sets declare.
    fn extension(&self, called: &Called<'_, 'c>) -> Option<Estimated> {
        let allocating =
            |factor: f64, size: Estimate| sized(size.scale(factor).add(ONE).add(Estimate::fixed(10)), size);
        let target = called.target.map(|target| self.sized(target));
        match (called.overload, called.args) {
            ("list_slice", [start, end]) => {
                let end = literal_or(end, target?.max);
                allocating(1.0, Estimate::fixed(end.wrapping_sub(literal_or(start, 0))))
            }
            ("lists_range", [count]) => allocating(1.0, Estimate::fixed(literal_or(count, u64::MAX))),
            ("list_reverse", []) => allocating(1.0, target?),
            ("list_flatten", []) => allocating(1.0, target?),
            ("list_flatten_int", [depth]) => allocating(literal_or(depth, u64::MAX) as f64, target?),
            ("list_distinct", []) => allocating(2.0, target?.multiply(target?)),
            ("list_sets_contains_list" | "list_sets_intersects_list", [left, right]) => {
                of(self.sized(left).multiply(self.sized(right)).scale(1.0).add(ONE))
            }
            ("list_sets_equivalent_list", [left, right]) => {
                of(self.sized(left).multiply(self.sized(right)).scale(2.0).add(ONE))
            }
            (overload, args) => {
                let sorted = match (overload.ends_with("_sort"), overload.ends_with("_sortByAssociatedKeys"), args) {
                    (true, _, []) => target?,
                    (_, true, [keys]) => self.sized(keys),
                    _ => return None,
                };
                let is_text = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
                allocating(if is_text { 2.0 + CHAR } else { 2.0 }, sorted.multiply(sorted))
            }
        }
    }

    /// Costs that Kubernetes declares.
    fn kubernetes(&self, called: &Called<'_, 'c>) -> Option<Estimated> {
        let target = called.target;
        let first = called.args.first();
        let arg = |at: usize| called.args.get(at).map(|arg| self.sized(arg));
        if is_constant(called.function) {
            return of(ONE);
        }
        match called.function {
            "check" => of(Estimate::fixed(350_000)),
            "fieldSelector" | "labelSelector" if called.args.len() == 1 => {
                let length = arg(0)?;
                let requirements = length.scale(0.5).scale(50.0);
                of(Estimate::fixed(10).add(length.scale(CHAR)).add(requirements))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
                self.traversal(called.function, target?)
            }
            "url" | "jsonpatch.escapeKey" if called.args.len() == 1 => sized(arg(0)?.scale(CHAR), arg(0)?),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.sized(target?);
                sized(size.scale(CHAR), size)
            }
            "replace" if called.args.len() >= 2 => {
                let size = self.sized(target?);
                sized(size.scale(2.0 * CHAR), replaced(size, arg(0)?, arg(1)?))
            }
            "split" => {
                let size = self.sized(target?);
                let limit = called.args.get(1).and_then(|limit| match limit.expr.map(|expr| &expr.kind) {
                    Some(Kind::Literal(Literal::Int(limit))) => Some(*limit as u64),
                    _ => None,
                });
                sized(size.scale(2.0 * CHAR), Estimate { min: 0, max: limit.unwrap_or(size.max) })
            }
            "join" => self.joined(target?, first),
            "find" | "findAll" if first.is_some() => {
                let size = self.sized(target?);
                let cost = size.add(ONE).scale(CHAR).multiply(arg(0)?.scale(PATTERN_CHAR));
                sized(cost, Estimate { min: 0, max: size.max })
            }
            "ip" if called.overload == "cidr_ip" => of(ONE),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                of(arg(0)?.scale(CHAR))
            }
            "ip.isCanonical" => of(arg(0)?.scale(2.0 * CHAR)),
            "containsIP" | "containsCIDR" => {
                let size = Estimate { min: 4, max: 16 };
                let mut cost = size.add(size).scale(CHAR);
                if called.function == "containsCIDR" {
                    cost = cost.add(size.scale(CHAR)).add(ONE);
                }
                if called.overload.ends_with("_string") {
                    cost = cost.add(arg(0)?.scale(CHAR));
                }
                of(cost)
            }
            "validate" => of(arg(0)?.scale(CHAR).scale(FORMAT_PATTERN_MAX * PATTERN_CHAR)),
            "_==_" => opaque_equality(called.args),
            _ => None,
        }
    }

    fn item_node(&self, list: &Node<'_>) -> Option<Node<'static>> {
        let item = list.of.params().first().map(|item| (*item).clone())?;
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".to_owned());
        }
        Some(Node { path, of: item, expr: None, size: None })
    }

    fn traversal(&self, function: &str, target: &Node<'_>) -> Option<Estimated> {
        let size = self.sized(target);
        let Some(item) = self.item_node(target) else {
            return of(if function == "includes" { size.multiply(ONE) } else { size.scale(CHAR) });
        };
        let mut each = ONE;
        if matches!(item.of, Type::String | Type::Bytes) {
            each = each.add(self.sized(&item).scale(CHAR));
        }
        of(size.multiply(each))
    }

    fn joined(&self, target: &Node<'_>, separator: Option<&Node<'_>>) -> Option<Estimated> {
        let list = self.sized(target);
        let mut size = self.item_node(target).map_or(Estimate::ZERO, |item| list.multiply(self.sized(&item)));
        if let Some(separator) = separator {
            let count = Estimate { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
            size = size.add(self.sized(separator).multiply(count));
        }
        sized(size.scale(CHAR), size)
    }

    /// Costs that cel-go declares.
    fn standard(&mut self, expr: &Expr, called: &Called<'_, 'c>, sum: Estimate) -> Option<Estimated> {
        let size = |node: Option<&Node<'_>>| node.and_then(|node| node.size).unwrap_or(Estimate::UNKNOWN);
        let arg = |at: usize| size(called.args.get(at));
        let with_args = |cost: Estimate| of(cost.add(sum));
        match called.overload {
            "string_format" if called.target.is_some() => with_args(size(called.target).scale(CHAR)),
            "string_to_bytes" => {
                let size = Estimate { min: arg(0).min, max: arg(0).max.wrapping_mul(4) };
                sized(arg(0).scale(CHAR).add(sum), size)
            }
            "bytes_to_string" => sized(arg(0).scale(CHAR).add(sum), Estimate { min: arg(0).min / 4, max: arg(0).max }),
            "strings_quote" => {
                let size =
                    Estimate { min: arg(0).min.wrapping_add(2), max: arg(0).max.wrapping_mul(2).wrapping_add(2) };
                sized(arg(0).scale(CHAR).add(sum), size)
            }
            "starts_with_string" | "ends_with_string" => with_args(arg(0).scale(CHAR)),
            "in_list" => with_args(arg(1).scale(1.0)),
            "matches" | "matches_string" => {
                let (text, pattern) = match called.target {
                    Some(_) => (size(called.target), arg(0)),
                    None => (arg(0), arg(1)),
                };
                with_args(text.add(ONE).scale(CHAR).multiply(pattern.scale(PATTERN_CHAR)))
            }
            "contains_string" => with_args(size(called.target).scale(CHAR).multiply(arg(0).scale(CHAR))),
            "logical_or" | "logical_and" => {
                let [left, right] = called.costs else { return None };
                of(Estimate { min: left.min, max: left.add(*right).max })
            }
            "conditional" => {
                let ([condition, truthy, falsy], [_, truthy_node, falsy_node]) = (called.costs, called.args) else {
                    return None;
                };
                let entry = |node: &Node<'c>| node.expr.and_then(|expr| self.entry_size(expr));
                if let (Some(left), Some(right)) = (entry(truthy_node), entry(falsy_node)) {
                    self.entries.insert(expr.id, left.union(right));
                }
                sized(condition.add(truthy.union(*falsy)), arg(1).union(arg(2)))
            }
            "add_string" | "add_bytes" | "add_list" => {
                let total = arg(0).add(arg(1));
                let entry =
                    |at: usize| called.args.get(at).and_then(|arg| arg.expr).and_then(|arg| self.entry_size(arg));
                if let (Some(left), Some(right)) = (entry(0), entry(1)) {
                    self.entries.insert(expr.id, left.union(right));
                }
                let cost = if called.overload == "add_list" { ONE } else { total.scale(CHAR) };
                sized(cost.add(sum), total)
            }
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => {
                let max = arg(0).max.min(arg(1).max);
                with_args(Estimate { min: u64::from(max > 0), max }.scale(CHAR))
            }
            _ => None,
        }
    }
}

/// Whether a function of Kubernetes costs the same whatever it is given.
fn is_constant(function: &str) -> bool {
    is_constant_of_values(function) || is_of_authorizer(function)
}

/// Whether a function of the authorizer or of one of its checks is meant.
fn is_of_authorizer(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
    )
}

/// Whether a function of addresses, formats, quantities, versions or URLs costs the same whatever it is given: 1 when
/// it is called.
pub(crate) fn is_constant_of_values(function: &str) -> bool {
    matches!(
        function,
        "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

/// A literal number that is not negative, or what stands for anything else.
fn literal_or(node: &Node<'_>, otherwise: u64) -> u64 {
    match node.expr.map(|expr| &expr.kind) {
        Some(Kind::Literal(Literal::Int(value))) => u64::try_from(*value).unwrap_or(0),
        _ => otherwise,
    }
}

/// Returns the size of a string after parts of it are replaced.
fn replaced(size: Estimate, old: Estimate, new: Estimate) -> Estimate {
    let mut count = Estimate::ZERO;
    let mut kept = Estimate::ZERO;
    if old.min == 0 {
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = (size.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = (size.min as f64 / old.max as f64).ceil() as u64;
    }
    count.multiply(new).add(kept)
}

/// Equality of values that only functions look into.
fn opaque_equality(args: &[Node<'_>]) -> Option<Estimated> {
    let [left, right] = args else { return None };
    if left.of.name() != right.of.name() || !matches!(left.of.kind(), TypeKind::Opaque | TypeKind::Struct) {
        return None;
    }
    match left.of.name() {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => of(ONE),
        "kubernetes.NamedFormat" => of(Estimate { min: 1, max: FORMAT_NAME_MAX }.scale(CHAR)),
        "kubernetes.URL" => of(Estimate { min: 1, max: right.size.map_or(1, |size| size.max) }.scale(CHAR)),
        _ => None,
    }
}
