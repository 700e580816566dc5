//! A short list that needs no allocation.

/// A list that is stored inline up to `N` elements.
#[derive(Clone, Debug)]
pub struct Few<T, const N: usize> {
    inline: [T; N],
    length: usize,
    /// All elements, when there are more.
    more: Vec<T>,
}

impl<T: Default, const N: usize> Few<T, N> {
    /// Adds an element.
    #[inline]
    pub fn push(&mut self, element: T) {
        if let (true, Some(place)) = (self.more.is_empty(), self.inline.get_mut(self.length)) {
            *place = element;
            self.length += 1;
            return;
        }
        if self.more.is_empty() {
            self.more.extend(self.inline.iter_mut().map(std::mem::take));
        }
        self.more.push(element);
    }

    /// The elements.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        if self.more.is_empty() { &self.inline[..self.length] } else { &self.more }
    }

    /// The elements.
    #[must_use]
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.more.is_empty() { &mut self.inline[..self.length] } else { &mut self.more }
    }
}

impl<T: Default, const N: usize> Default for Few<T, N> {
    #[inline]
    fn default() -> Self {
        Self { inline: std::array::from_fn(|_| T::default()), length: 0, more: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_elements_in_order_however_many() {
        let mut list = Few::<String, 3>::default();
        for count in 0..10 {
            let want: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            assert_eq!(list.as_slice(), want);
            assert_eq!(list.as_mut_slice(), want);
            list.push(count.to_string());
        }
    }
}
