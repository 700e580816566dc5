//! Pure: scripts with which shells complete our command lines.
//!
//! The flags of the controller manager are in a table and those of other commands in clap; both come as [`Commands`].

use std::fmt::Write;

/// Commands with their flags and what these are for.
pub(super) type Commands = Vec<(String, Vec<(String, String)>)>;

/// The shells there are scripts for.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The script for a shell; `None` for one that is not known.
pub(super) fn script(shell: &str, commands: &Commands) -> Option<String> {
    match shell {
        "bash" => Some(bash(commands)),
        "zsh" => Some(zsh(commands)),
        "fish" => Some(fish(commands)),
        _ => None,
    }
}

fn names(commands: &Commands) -> String {
    commands.iter().map(|command| command.0.as_str()).collect::<Vec<_>>().join(" ")
}

fn bash(commands: &Commands) -> String {
    let mut cases = String::new();
    for (name, flags) in commands {
        let flags: Vec<_> = flags.iter().map(|(flag, _)| format!("--{flag}")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(cases, "        {name}) flags='{}' ;;", flags.join(" "));
    }
    format!(
        "# bash completion: source <(steersman completion bash)
_steersman() {{
    local word=\"${{COMP_WORDS[COMP_CWORD]}}\" command=\"${{COMP_WORDS[1]}}\" flags=''
    [ \"$(basename -- \"${{COMP_WORDS[0]}}\")\" = kube-controller-manager ] && command=controller-manager
    case \"$command\" in
{cases}    esac
    if [ \"$COMP_CWORD\" -eq 1 ] && [ \"${{word#-}}\" = \"$word\" ]; then
        COMPREPLY=($(compgen -W '{}' -- \"$word\"))
    elif [ \"${{word#-}}\" != \"$word\" ]; then
        COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))
    fi
}}
complete -o default -F _steersman steersman kube-controller-manager
",
        names(commands)
    )
}

fn zsh(commands: &Commands) -> String {
    let mut cases = String::new();
    for (name, flags) in commands {
        let _ = writeln!(cases, "        {name}) flags=(");
        for (flag, help) in flags {
            // In a specification, brackets and colons mean something, and a quotation mark ends it.
            let help: String = help.chars().filter(|letter| !"[]:'\\".contains(*letter)).collect();
            let _ = writeln!(cases, "            '--{flag}[{help}]'");
        }
        let _ = writeln!(cases, "        ) ;;");
    }
    format!(
        "#compdef steersman kube-controller-manager
# zsh completion: source <(steersman completion zsh)
_steersman() {{
    local -a flags
    local command=\"${{words[2]}}\"
    [[ \"${{words[1]:t}}\" == kube-controller-manager ]] && command=controller-manager
    case \"$command\" in
{cases}    esac
    if (( CURRENT == 2 )) && [[ \"${{words[1]:t}}\" != kube-controller-manager ]]; then
        compadd {}
    else
        _arguments -S $flags '*:file:_files'
    fi
}}
compdef _steersman steersman kube-controller-manager
",
        names(commands)
    )
}

fn fish(commands: &Commands) -> String {
    let mut text = format!(
        "# fish completion: steersman completion fish | source\n\
         complete -c steersman -n __fish_use_subcommand -f -a '{}'\n",
        names(commands)
    );
    for (name, flags) in commands {
        for (flag, help) in flags {
            let help = help.replace('\\', "").replace('\'', "\\'");
            let _ =
                writeln!(text, "complete -c steersman -n '__fish_seen_subcommand_from {name}' -l {flag} -d '{help}'");
            if name == "controller-manager" {
                let _ = writeln!(text, "complete -c kube-controller-manager -l {flag} -d '{help}'");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_commands_and_flags() {
        let flags = vec![("kubeconfig".to_owned(), "the cluster's [file]".to_owned())];
        let commands = vec![("controller-manager".to_owned(), flags), ("up".to_owned(), Vec::new())];
        for shell in SHELLS {
            let script = script(shell, &commands).unwrap();
            assert!(script.contains("controller-manager") && script.contains("kubeconfig"), "{shell}: {script}");
        }
        assert!(script("bash", &commands).unwrap().contains("compgen -W 'controller-manager up'"));
        assert!(script("zsh", &commands).unwrap().contains("'--kubeconfig[the clusters file]'"));
        assert!(script("fish", &commands).unwrap().contains(r"-d 'the cluster\'s [file]'"));
        assert_eq!(script("csh", &commands), None);
    }
}
