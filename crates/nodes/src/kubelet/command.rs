//! The simulation of a container's command: its output, when it ends, and its exit code.
//!
//! Supported are `true`, `false`, `exit`, `sleep`, `echo` and `:`, alone or in `sh -c` with `;`, newlines, `&&` and
//! `||`. A command that is not fully understood runs until its pod is deleted, as does an image without a command:
//! running on is better than ending wrongly.

use std::time::Duration;

use crate::duration;

/// The effects of a command, with times relative to its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    /// The output, and when it is printed.
    pub(crate) printed: Vec<(Duration, String)>,
    /// The time at which it ends, and its exit code; `None` if it never ends.
    pub(crate) end: Option<(Duration, i32)>,
}

/// The way in which a command of a script depends on the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// It runs in any case.
    Then,
    /// It runs if the previous one succeeded.
    And,
    /// It runs if the previous one failed.
    Or,
}

/// A token of a script.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Link(Link),
}

/// A command of a script, and its dependency.
type Linked = (Link, Vec<String>);

/// The effect of one command.
enum Does {
    Prints(String),
    Sleeps(Duration),
    Ends(i32),
    /// It ends at once, with this code.
    Answers(i32),
    /// It never ends.
    RunsOn,
}

// === impl Program ===

impl Program {
    /// Interprets these words. A command that is not understood never ends, and prints nothing.
    pub(crate) fn of<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Self {
        let words: Vec<String> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        match shell_script(&words) {
            Some((script, stops_at_failure)) => Self::of_script(script, stops_at_failure),
            None => Self::of_commands(&[(Link::Then, words)], false),
        }
        .unwrap_or_default()
    }

    fn of_script(script: &str, stops_at_failure: bool) -> Option<Self> {
        let mut commands: Vec<Linked> = Vec::new();
        let mut link = Link::Then;
        let mut words = Vec::new();
        for token in tokens(script)? {
            match token {
                Token::Word(word) => words.push(word),
                Token::Link(next) => {
                    if !words.is_empty() {
                        commands.push((link, std::mem::take(&mut words)));
                        link = next;
                    } else if next != Link::Then {
                        return None;
                    }
                }
            }
        }
        if !words.is_empty() {
            commands.push((link, words));
        } else if link != Link::Then {
            return None;
        }
        Self::of_commands(&commands, stops_at_failure)
    }

    fn of_commands(commands: &[Linked], stops_at_failure: bool) -> Option<Self> {
        let mut program = Self::default();
        let mut at = Duration::ZERO;
        let mut code = 0;
        // All of it must be understood, also what does not run.
        let effects: Vec<Does> = commands.iter().map(|(_, words)| does(words)).collect::<Option<_>>()?;
        for (index, ((link, words), effect)) in commands.iter().zip(effects).enumerate() {
            let runs = match link {
                Link::Then => true,
                Link::And => code == 0,
                Link::Or => code != 0,
            };
            if !runs {
                continue;
            }
            match effect {
                Does::Prints(text) => {
                    program.printed.push((at, text));
                    code = 0;
                }
                Does::Sleeps(time) => {
                    at += time;
                    code = 0;
                }
                Does::Answers(answer) => code = answer,
                Does::Ends(with) => {
                    program.end = Some((at, if words.len() > 1 { with } else { code }));
                    return Some(program);
                }
                Does::RunsOn => return Some(program),
            }
            let is_tested = commands.get(index + 1).is_some_and(|(next, _)| *next != Link::Then);
            if stops_at_failure && code != 0 && !is_tested {
                break;
            }
        }
        program.end = Some((at, code));
        Some(program)
    }
}

/// Returns the script of `sh -c script`, and whether the shell stops at the first failure.
fn shell_script(words: &[String]) -> Option<(&str, bool)> {
    let [shell, flags, script, ..] = words else { return None };
    let is_shell = matches!(base_name(shell), "sh" | "bash" | "ash" | "dash");
    let letters = flags.strip_prefix('-')?;
    let is_script = letters.ends_with('c') && letters.chars().all(|letter| "ceux".contains(letter));
    (is_shell && is_script).then(|| (script.as_str(), letters.contains('e')))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Interprets one command, if it is supported.
fn does(words: &[String]) -> Option<Does> {
    let (name, arguments) = words.split_first()?;
    Some(match base_name(name) {
        "true" | ":" => Does::Answers(0),
        "false" => Does::Answers(1),
        "echo" => Does::Prints(echo(arguments)),
        "exit" => match arguments {
            [] => Does::Ends(0),
            [code] => Does::Ends(code.parse::<i32>().ok()?.rem_euclid(256)),
            _ => return None,
        },
        "sleep" if arguments.iter().any(|time| matches!(time.as_str(), "infinity" | "inf")) => Does::RunsOn,
        "sleep" if !arguments.is_empty() => {
            let times = arguments.iter().map(|time| duration::parse(time));
            Does::Sleeps(times.collect::<Option<Vec<_>>>()?.into_iter().sum())
        }
        _ => return None,
    })
}

/// Returns the output of `echo`: its arguments in a line; `-n` omits the newline.
fn echo(arguments: &[String]) -> String {
    match arguments.split_first() {
        Some((flag, rest)) if flag == "-n" => rest.join(" "),
        _ => arguments.join(" ") + "\n",
    }
}

/// Splits a script into words and operators. `None` if it contains anything else: pipes, redirections, braces,
/// subshells. Variables are not expanded: their values are unknown.
fn tokens(script: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = script.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '\'' | '"' => {
                let into = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        quote if quote == char => break,
                        '\\' if char == '"' && matches!(rest.peek(), Some('"' | '\\' | '$' | '`')) => {
                            into.push(rest.next()?);
                        }
                        '`' if char == '"' => return None,
                        other => into.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            '#' if word.is_none() => while rest.next_if(|char| *char != '\n').is_some() {},
            '&' | '|' => {
                // `&&` and `||` are operators; `&` and `|` are not supported.
                rest.next_if_eq(&char)?;
                tokens.extend(word.take().map(Token::Word));
                tokens.push(Token::Link(if char == '&' { Link::And } else { Link::Or }));
            }
            ';' | '\n' => {
                tokens.extend(word.take().map(Token::Word));
                tokens.push(Token::Link(Link::Then));
            }
            char if char.is_whitespace() => tokens.extend(word.take().map(Token::Word)),
            '<' | '>' | '(' | ')' | '{' | '}' | '`' => return None,
            char => word.get_or_insert_default().push(char),
        }
    }
    tokens.extend(word.map(Token::Word));
    Some(tokens)
}
