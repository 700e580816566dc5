//! Short texts: quantities, selectors, field selectors, times, numbers or percentages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steersman_base::{FieldSelector, IntOrString, MicroTime, Quantity, Selector, StringMap, Time};

fuzz_target!(|text: &str| {
    if let Ok(quantity) = text.parse::<Quantity>() {
        let shown = quantity.to_string();
        assert_eq!(shown.parse::<Quantity>().ok().as_ref(), Some(&quantity), "{shown}");
    }
    if let Ok(selector) = text.parse::<Selector>() {
        let _ = selector.matches(&StringMap::default());
        let shown = selector.to_string();
        assert!(shown.parse::<Selector>().is_ok(), "{shown}");
    }
    if let Ok(selector) = text.parse::<FieldSelector>() {
        let shown = selector.to_string();
        assert!(shown.parse::<FieldSelector>().is_ok(), "{shown}");
    }
    if let Ok(time) = text.parse::<Time>() {
        assert_eq!(time.to_string().parse::<Time>().ok(), Some(time));
    }
    let _ = text.parse::<MicroTime>();
    let _ = IntOrString::parse(text).to_string();
});
