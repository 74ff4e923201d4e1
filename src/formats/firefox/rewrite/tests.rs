use super::bare::parse_address;
use super::*;
use crate::contract::unsymbolized::NamedCall;
use crate::model::{Addr, FrameAddr, Pid};

/// Two threads with tables of their own, as samply writes them, with unusual spacing and spelling of numbers.
const OWN: &str = r#"{"meta":{"preprocessedProfileVersion":55, "interval":1.000e0, "later":[1,2.50,{"a":null}]},"libs":[],
"threads":[
 {"name":"a","pid":"77.1","tid":"77","samples":{"length":2,"stack":[1,null],"time":[0.10,1e3]},
  "stackTable":{"length":2,"prefix":[null,0],"frame":[0,1]},
  "frameTable":{"length":3,"address":[-1,-1,4096],"func":[0,1,2],"line":[null,null,null]},
  "funcTable":{"length":3,"name":[0, 1 ,0],"resource":[-1,-1,0],"fileName":[null,null,null],"lineNumber":[null,null,null]},
  "resourceTable":{"length":1,"lib":[0],"name":[2]},
  "stringArray":["0x1000","0x1008","lib\u0041"]},
 {"name":"b","pid":78,"tid":78,"samples":{"stack":[0]},
  "stackTable":{"prefix":[null],"frame":[0]},
  "frameTable":{"func":[0]},
  "funcTable":{"name":[0],"resource":[-1],"fileName":[null]},
  "stringArray":["0x1000"]}
]}
"#;

/// Tables shared by all threads, as in version 75.
const SHARED: &str = r#"{"meta":{"preprocessedProfileVersion":75},
"shared":{"stringArray":["0x1000","0x2000","main","0x3000"],
 "stackTable":{"length":3,"prefixOffset":[0,1,1],"frame":[0,1,2]},
 "frameTable":{"length":4,"flags":[4,4,4,4],"func":[0,1,2,3],"line":[0,0,0,0]},
 "funcTable":{"length":4,"flags":[0,1,0,4],"name":[2,0,1,3],"resource":[0,0,0,0],"source":[0,0,0,0]},
 "sources":{"length":0,"id":[],"filename":[],"startLine":[],"startColumn":[],"sourceMapURL":[],"content":[]}},
"threads":[{"pid":"77","samples":{"stack":[2,1]}},{"pid":"78","samples":{"stack":[1]}}]}"#;

/// The addresses of a file to look up.
fn unnamed_addresses(text: &str) -> Vec<BareAddress> {
    open(text.as_bytes(), &mut Warnings::new()).unwrap().addresses().to_vec()
}

/// The file with names added; `names` returns the functions at an address of a process.
fn add_names(text: &str, names: &dyn Fn(i32, u64) -> Vec<NamedCall<'static>>) -> String {
    let mut profile = open(text.as_bytes(), &mut Warnings::new()).unwrap();
    let addresses = profile.addresses().to_vec();
    let look_up = |index: usize| names(addresses[index].pid.unwrap().0, addresses[index].addr.raw().0);
    let mut out = Vec::new();
    profile.write(&look_up, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn call(name: &'static str, file: &'static str, line: u32) -> NamedCall<'static> {
    NamedCall { name: name.as_bytes(), file: file.as_bytes(), line }
}

fn bare(pid: i32, addr: u64) -> BareAddress {
    BareAddress { pid: Some(Pid(pid)), file: None, addr: FrameAddr::Ip(Addr(addr)) }
}

/// Replaces pieces of a text, each of which must occur exactly once.
fn replace_all(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    })
}

#[test]
fn asked_is_what_is_in_no_library_and_called_after_its_address() {
    assert_eq!(unnamed_addresses(OWN), [bare(77, 0x1000), bare(77, 0x1008), bare(78, 0x1000)]);
    assert_eq!(unnamed_addresses(SHARED), [bare(77, 0x1000), bare(77, 0x2000), bare(78, 0x1000)]);
    let names = ["0x", "0x+1", "0xg", "0x0", "0x12345678901234567", "1000", "0X1"];
    assert!(names.iter().all(|name| parse_address(name).is_none()));
    assert_eq!(parse_address("0xffffffffffffffff"), Some(Addr(u64::MAX)));
}

#[test]
fn only_what_is_named_changes() {
    let out = add_names(OWN, &|pid, addr| match (pid, addr) {
        (77, 0x1008) => vec![call("inlined", "", 9), call("f\"\u{e9}", "a.js", 3)],
        _ => Vec::new(),
    });
    let changes = [
        (r#""func":[0,1,2],"line":[null,null,null]"#, r#""func":[0,1,2],"line":[null,3,null]"#),
        (r#""name":[0, 1 ,0],"#, r#""name":[0, 3 ,0],"#),
        (r#""fileName":[null,null,null]"#, r#""fileName":[null,4,null]"#),
        (r#""lib\u0041"]"#, "\"lib\\u0041\",\"f\\\"\u{e9}\",\"a.js\"]"),
    ];
    assert_eq!(out, replace_all(OWN, &changes));
    assert_eq!(add_names(OWN, &|_, _| Vec::new()), OWN);
}

#[test]
fn addresses_of_one_function_become_one_and_threads_have_strings_of_their_own() {
    let name = |pid, _| vec![call(if pid == 77 { "f" } else { "g" }, "", 0)];
    let out = add_names(OWN, &name);
    // In the first thread, the addresses 0x1000 and 0x1008 are both in `f`. Their frames get the same function, which
    // is named by a new string with the index 3. The second thread has its own strings, so its new string `g` has the
    // index 1.
    let changes = [
        (r#""func":[0,1,2]"#, r#""func":[0,0,2]"#),
        (r#""name":[0, 1 ,0],"#, r#""name":[3, 3 ,0],"#),
        (r#""lib\u0041"]"#, r#""lib\u0041","f"]"#),
        (r#""funcTable":{"name":[0],"#, r#""funcTable":{"name":[1],"#),
        (r#""stringArray":["0x1000"]"#, r#""stringArray":["0x1000","g"]"#),
    ];
    assert_eq!(out, replace_all(OWN, &changes));
    assert_eq!(unnamed_addresses(&out), []);
    assert_eq!(add_names(&out, &name), out, "named twice is named once");
}

#[test]
fn a_function_of_several_processes_gets_the_name_that_they_agree_on() {
    let agree =
        add_names(SHARED, &|_, addr| vec![if addr == 0x1000 { call("f", "a.js", 3) } else { call("g", "", 0) }]);
    let changes = [
        (r#""0x3000"]"#, r#""0x3000","f","a.js","g"]"#),
        (r#""flags":[4,4,4,4]"#, r#""flags":[4,20,4,4]"#),
        (r#""line":[0,0,0,0]"#, r#""line":[0,3,0,0]"#),
        (r#""flags":[0,1,0,4],"name":[2,0,1,3]"#, r#""flags":[0,9,0,4],"name":[2,4,6,3]"#),
        (
            r#"{"length":0,"id":[],"filename":[],"startLine":[],"startColumn":[],"sourceMapURL":[],"content":[]}"#,
            r#"{"length":1,"id":[null],"filename":[5],"startLine":[1],"startColumn":[1],"sourceMapURL":[null],"content":[null]}"#,
        ),
    ];
    assert_eq!(agree, replace_all(SHARED, &changes));
    let differ = add_names(SHARED, &|pid, addr| match (pid, addr) {
        (77, 0x1000) => vec![call("f", "", 0)],
        (78, 0x1000) => vec![call("other", "", 0)],
        _ => Vec::new(),
    });
    assert_eq!(differ, SHARED);
}

#[test]
fn a_table_of_sources_of_a_later_version_is_left() {
    let later = replace_all(SHARED, &[(r#""content":[]"#, r#""content":[],"later":[]"#)]);
    let out = add_names(&later, &|_, _| vec![call("f", "a.js", 0)]);
    let sources = |text: &str| text.split(r#""sources""#).nth(1).unwrap().to_owned();
    assert_eq!(sources(&out), sources(&later));
    assert!(out.contains(r#""0x3000","f"]"#));
}

#[test]
fn numbers_texts_and_spaces_stay_as_they_are_written() {
    let spelled = [
        (
            r#""interval":1.000e0"#,
            "\"interval\" :\t-0,\r\n \"a\":1E5,\"b\":123456789012345678901234567890.10,\"b\":1e-7,\"c\":-0.0",
        ),
        (r#""time":[0.10,1e3]"#, r#""time":[0.100000000000000005551115123125782702118158340454101562 , 1.0E+3]"#),
        (r#"{"name":"a","pid""#, r#"{"name":"\u0061\/\ud83d\ude00\t","name2":"a","name2":"a","pid""#),
        (r#""name":[0, 1 ,0],"#, r#""name":[0.0, 1e0 ,-0],"#),
        (r#""func":[0,1,2]"#, r#""func":[ 0 ,1.0, 20e-1]"#),
        (r#""lib\u0041"]"#, r#""lib\u0041\ud800" ]"#),
    ];
    // Each change applies to the result of the previous ones.
    let text = spelled.iter().fold(OWN.to_owned(), |text, (old, new)| text.replacen(old, new, 1));
    assert!(spelled.iter().all(|(_, new)| text.contains(new)));
    assert_eq!(add_names(&text, &|_, _| Vec::new()), text);
    let out =
        add_names(&text, &|pid, addr| if (pid, addr) == (77, 0x1008) { vec![call("f", "", 0)] } else { Vec::new() });
    assert_eq!(out, replace_all(&text, &[("[0.0, 1e0 ,-0]", "[0.0, 3 ,-0]"), (r#"\ud800" ]"#, r#"\ud800" ,"f"]"#)]));
}

#[test]
fn a_name_that_holds_several_functions_is_reported_whole() {
    assert!(!open(OWN.as_bytes(), &mut Warnings::new()).unwrap().expands_calls());
}

/// A damaged profile must be refused, or rewritten to something that can be read again.
fn assert_harmless(bytes: &[u8]) {
    let Ok(mut profile) = open(bytes, &mut Warnings::new()) else { return };
    let mut out = Vec::new();
    if profile.write(&|_| vec![call("f", "a", 1)], &mut out).is_ok() {
        let named = profile.addresses().len();
        drop(profile);
        let again = open(&out, &mut Warnings::new());
        assert!(again.is_ok_and(|again| again.addresses().len() <= named), "{}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn damage_anywhere_does_no_harm() {
    for text in [OWN, SHARED] {
        for at in 0..text.len() {
            assert_harmless(&text.as_bytes()[..at]);
            for change in [0x01, 0x02, 0x04, 0x10, 0x20, 0x55, 0x80] {
                let mut damaged = text.as_bytes().to_vec();
                damaged[at] ^= change;
                assert_harmless(&damaged);
            }
        }
    }
}
