//! What stands between C and the engine: statuses, error texts, and a net under panics.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The call did what was asked.
    Ok = 0,
    /// The policy refuses the request.
    Refused = 1,
    /// The caller gave something that cannot be: the error text says what.
    BadInput = 2,
    /// The library failed. Nothing was changed, but a state that was to be changed is of no use any more.
    Failed = 3,
}

/// Why a call cannot be done, in a sentence.
pub struct Problem(pub String);

impl<T: Into<String>> From<T> for Problem {
    fn from(text: T) -> Self {
        Problem(text.into())
    }
}

/// Runs `body`. A problem goes to `error`; so does a panic, for which the status is `Failed`.
///
/// # Safety
/// `error` is NULL or may be written.
pub unsafe fn guarded(
    error: *mut *mut c_char,
    body: impl FnOnce() -> Result<Status, Problem>,
) -> Status {
    // A body changes only what `with_state` marks as broken after a panic.
    let (status, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => (status, None),
        Ok(Err(Problem(text))) => (Status::BadInput, Some(text)),
        Err(_) => (Status::Failed, Some("the engine failed; this is a bug of Topolane".to_owned())),
    };
    if !error.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *error = text.map_or(std::ptr::null_mut(), |text| to_c(&text).into_raw()) };
    }
    status
}

/// As [`guarded`] for what cannot fail otherwise: `fallback` after a panic.
pub fn or_else<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(fallback)
}

/// A text for C: without the zero bytes that it cannot have.
pub fn to_c(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// Hands out an object.
///
/// # Safety
/// `to` may be written.
pub unsafe fn give<T>(to: *mut *mut T, object: T) {
    // SAFETY: the caller's promise.
    unsafe { *to = Box::into_raw(Box::new(object)) };
}

/// Takes back an object that [`give`] handed out.
///
/// # Safety
/// `object` is NULL or comes from [`give`] and is not used again.
pub unsafe fn take_back<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        let object = unsafe { Box::from_raw(object) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    }
}

/// The object behind a pointer.
///
/// # Safety
/// `object` is NULL or points to a live object that nothing changes meanwhile.
pub unsafe fn object<'a, T>(object: *const T, what: &str) -> Result<&'a T, Problem> {
    // SAFETY: the caller's promise.
    unsafe { object.as_ref() }.ok_or_else(|| format!("{what} is NULL").into())
}

/// A struct that begins with its size, from a caller that may have been compiled for an earlier version: what that one
/// did not have is zero. `least` is its size in version 1.
///
/// # Safety
/// `from` is NULL or points to as many bytes as its first member says; zeros are a valid `T`, which is `repr(C)` and begins
/// with a `usize`.
pub unsafe fn sized<T>(
    from: *const T,
    what: &str,
    least: usize,
    too_small: &str,
) -> Result<T, Problem> {
    if from.is_null() {
        return Err(format!("{what} is NULL").into());
    }
    // SAFETY: not NULL; the caller's promise.
    let size = unsafe { from.cast::<usize>().read() };
    if size < least {
        return Err(too_small.into());
    }
    let mut whole = MaybeUninit::<T>::zeroed();
    // SAFETY: both have `bytes` bytes, and zeros are a valid `T`.
    unsafe {
        let bytes = size.min(size_of::<T>());
        whole.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.cast::<u8>(), bytes);
        Ok(whole.assume_init())
    }
}

/// A slot to write an answer to.
pub fn writable<T>(to: *mut T, what: &str) -> Result<*mut T, Problem> {
    if to.is_null() { Err(format!("{what} is NULL").into()) } else { Ok(to) }
}

/// The text behind a pointer.
///
/// # Safety
/// `text` is NULL or points to a text that ends with a zero byte.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Problem> {
    if text.is_null() {
        return Err(format!("{what} is NULL").into());
    }
    // SAFETY: not NULL; the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| format!("{what} is not UTF-8").into())
}

/// The array behind a pointer; an empty one may be NULL.
///
/// # Safety
/// `first` points to `count` values, or is NULL.
pub unsafe fn array<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Problem> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(format!("{what} is NULL, though its count is {count}").into());
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(format!("{what}: a count of {count} is too large").into());
    }
    // SAFETY: not NULL, the length is in range, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Frees a text that the library handed out, such as an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller gives NULL or a text of this library.
        drop(unsafe { CString::from_raw(text) });
    }
}
