// Command rigd runs a throw-away Kubernetes control plane, etcd and
// kube-apiserver, for as long as it lives itself.
//
//	rigd [flags]              until Ctrl-C, SIGTERM or "rigd --down"
//	rigd [flags] -- CMD ARGS  until CMD ends; exits with CMD's code
//	rigd --down               ends every "rigd [flags]" that runs
//
// It exists because our Rust forbids unsafe code: only a process that can set
// a parent-death signal on its children can promise that they end with it
// even when it is killed with SIGKILL. `cargo xtask k8s up` and `run` replace
// themselves by rigd, so that to kill the command is to kill rigd.
//
// Guarantees:
//  1. No fixed ports. etcd listens on a socket in a private directory, and a
//     taken API server port is answered by trying another one.
//  2. The API server is ready (/readyz) before anything is printed or CMD runs.
//  3. Its children end with it, also on SIGKILL (Linux).
//  4. Its files are removed at the end; what a killed rigd left behind is
//     removed by the next one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags; `cargo xtask k8s` passes its own through unchanged.
type options struct {
	binDir      string
	stateDir    string
	kubeconfig  string
	auditLog    string
	auditPolicy string
	apiFlags    []string
	saAdmission bool
	keepData    bool
	down        bool
	command     []string
}

func init() {
	// The parent-death signal follows the thread that started the child, not
	// the process. The main thread lives as long as the process does.
	runtime.LockOSThread()
}

func main() {
	opts := parse(os.Args[1:])
	var code int
	var err error
	if opts.down {
		err = down(opts.stateDir)
	} else {
		code, err = serve(opts)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rig: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func parse(args []string) *options {
	opts := &options{}
	if at := slices.Index(args, "--"); at >= 0 {
		args, opts.command = args[:at], args[at+1:]
	}
	flags := flag.NewFlagSet("k8s up|run", flag.ContinueOnError)
	flags.StringVar(&opts.binDir, "bin-dir", "", "where etcd and kube-apiserver are (set by xtask)")
	flags.StringVar(&opts.stateDir, "state-dir", "", "where running rigs are recorded (set by xtask)")
	flags.BoolVar(&opts.down, "down", false, "end the running rigs (set by xtask)")
	flags.StringVar(&opts.kubeconfig, "kubeconfig-out", "", "write the administrator's kubeconfig to `FILE` too")
	flags.StringVar(&opts.auditLog, "audit-log", "", "write the API server's audit log to `FILE`")
	flags.StringVar(&opts.auditPolicy, "audit-policy", "", "audit by the policy in `FILE` (default: bodies of writes, no bodies of reads)")
	flags.BoolVar(&opts.saAdmission, "service-account-admission", false,
		"leave the ServiceAccount admission plug-in on: no pod is admitted before a controller has made its service account")
	flags.BoolVar(&opts.keepData, "keep-data", false, "keep etcd's data, keys and logs at the end")
	flags.Func("apiserver-flag", "pass `--NAME=VALUE` to kube-apiserver (repeatable; wins over the rig's own)", func(value string) error {
		if !strings.HasPrefix(value, "--") {
			return fmt.Errorf("must start with --, for example --apiserver-flag=--v=2")
		}
		opts.apiFlags = append(opts.apiFlags, value)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		os.Exit(2)
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "rig: unexpected argument %q; a command goes behind --\n", flags.Arg(0))
		os.Exit(2)
	}
	return opts
}

// serve brings the rig up, waits for its end and returns the exit code.
func serve(opts *options) (int, error) {
	// Subscribed first: a signal during the start must still clean up.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	// Ours first, so that the command and what it starts find this kubectl.
	os.Setenv("PATH", opts.binDir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if len(opts.command) > 0 {
		if _, err := exec.LookPath(opts.command[0]); err != nil {
			return 127, err
		}
	}
	sweep(opts.stateDir)
	started := time.Now()
	dir, err := makeDir(opts.keepData)
	if err != nil {
		return 1, err
	}
	record, err := register(opts.stateDir, recorded{
		Pid: os.Getpid(), Dir: dir, Foreground: len(opts.command) == 0, Keep: opts.keepData,
	})
	if err != nil {
		os.RemoveAll(dir)
		return 1, err
	}
	rig := &rig{options: opts, dir: dir, exited: make(chan exit, 4)}
	defer func() {
		rig.stop()
		if opts.keepData {
			fmt.Fprintf(os.Stderr, "rig: data, keys and logs are kept in %s\n", dir)
		} else {
			os.RemoveAll(dir)
		}
		record.remove()
	}()

	if err := rig.start(signals); err != nil {
		return 1, err
	}
	took := time.Since(started).Round(10 * time.Millisecond)
	if len(opts.command) == 0 {
		rig.announce(took)
		return rig.untilSignal(signals)
	}
	fmt.Fprintf(os.Stderr, "rig: kube-apiserver ready in %v at %s\n", took, rig.server)
	return rig.untilCommand(signals)
}

// announce prints what a person needs, on stdout, once.
func (r *rig) announce(took time.Duration) {
	fmt.Printf("kube-apiserver is ready in %v at %s\n\n", took, r.server)
	fmt.Printf("  export KUBECONFIG=%s\n", r.adminKubeconfig())
	fmt.Printf("  %s get namespaces\n\n", filepath.Join(r.options.binDir, "kubectl"))
	fmt.Printf("Keys, logs and the kubeconfigs of the controller manager and the scheduler are in %s.\n", r.dir)
	fmt.Printf("Ctrl-C or `cargo xtask k8s down` ends it.\n")
}

func (r *rig) untilSignal(signals <-chan os.Signal) (int, error) {
	select {
	case <-signals:
		return 0, nil
	case end := <-r.exited:
		return 1, r.died(end)
	}
}

// untilCommand runs the command in the rig's environment.
func (r *rig) untilCommand(signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(r.options.command[0], r.options.command[1:]...)
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+r.adminKubeconfig(),
		"STEERSMAN_RIG_KUBECONFIG="+r.adminKubeconfig(),
		"STEERSMAN_RIG_DIR="+r.dir,
		"STEERSMAN_RIG_BIN="+r.options.binDir,
	)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// It stays in our process group, so that it owns the terminal as if it had
	// been started without a rig.
	cmd.SysProcAttr = diesWithParent()
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	// After a signal the command gets time to end by itself, then less politely.
	var politely, firmly <-chan time.Time
	for {
		select {
		case err := <-ended:
			return exitCode(cmd, err)
		case end := <-r.exited:
			_ = cmd.Process.Kill()
			<-ended
			return 1, r.died(end)
		case sig := <-signals:
			// A terminal has already given Ctrl-C to the whole process group.
			if sig != syscall.SIGINT {
				_ = cmd.Process.Signal(sig)
			}
			if politely == nil {
				politely, firmly = time.After(3*time.Second), time.After(10*time.Second)
			}
		case <-politely:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-firmly:
			_ = cmd.Process.Kill()
		}
	}
}

// exitCode follows the shell: 128 + N for a command ended by signal N.
func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exitErr *exec.ExitError
	if err != nil && !errors.As(err, &exitErr) {
		return 1, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
