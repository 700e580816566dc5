package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Ready takes 3 s on an idle machine; the rest is for a busy one.
	startTimeout = 60 * time.Second
	// A port is lost to somebody else between being chosen and being bound.
	// Losing it this often in a row means that something else is wrong.
	portAttempts = 5
	// Where pods would reach the API server. Nothing listens there, but the
	// API server publishes it as the endpoint of the service
	// default/kubernetes and validation refuses a loopback address. It is
	// from TEST-NET-1, which nobody owns.
	advertiseAddress = "192.0.2.1"
	serviceRange     = "10.96.0.0/16"
	serviceAddress   = "10.96.0.1"
)

// rig is the two processes and the directory they live in.
type rig struct {
	options *options
	dir     string
	server  string
	running []*exec.Cmd
	exited  chan exit
}

// exit says which child ended.
type exit struct {
	name string
	err  error
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) adminKubeconfig() string { return r.path("admin.kubeconfig") }

// start returns when /readyz says so.
func (r *rig) start(signals <-chan os.Signal) error {
	pki, err := writePKI(r.dir)
	if err != nil {
		return fmt.Errorf("making keys: %w", err)
	}
	if err := r.startEtcd(); err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	for attempt := 1; ; attempt++ {
		err := r.startAPIServer(pki, signals, deadline)
		if err == nil {
			break
		}
		if !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return err
		}
	}
	return r.writeKubeconfigs(pki)
}

func (r *rig) startEtcd() error {
	return r.spawn("etcd",
		"--data-dir="+r.path("etcd"),
		// A socket in a directory that only we may enter: no port to race for,
		// and no other user who reads the cluster.
		"--listen-client-urls="+r.etcdURL(),
		// etcd refuses to advertise a socket; nobody asks for this address.
		"--advertise-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		// The data does not outlive the process.
		"--unsafe-no-fsync",
		"--quota-backend-bytes="+strconv.FormatInt(8<<30, 10),
		"--log-level=warn",
	)
}

func (r *rig) etcdURL() string { return "unix://" + r.path("etcd.sock") }

var errPortTaken = errors.New("no free port for kube-apiserver: each one tried was taken before it was bound")

func (r *rig) startAPIServer(pki *pki, signals <-chan os.Signal, deadline time.Time) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	args, err := r.apiServerFlags(port)
	if err != nil {
		return err
	}
	if err := r.spawn("kube-apiserver", args...); err != nil {
		return err
	}
	r.server = fmt.Sprintf("https://127.0.0.1:%d", port)

	client := &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs:      pki.ca.pool(),
			Certificates: []tls.Certificate{pki.admin.tls()},
		}},
	}
	defer client.CloseIdleConnections()
	// Not more often: on two cores the checks compete with the start itself.
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case sig := <-signals:
			return fmt.Errorf("stopped by %v while starting", sig)
		case end := <-r.exited:
			if end.name == "kube-apiserver" && r.logContains(end.name, "address already in use") {
				return errPortTaken
			}
			return r.died(end)
		case <-ticker.C:
			if ready(client, r.server) {
				return nil
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("kube-apiserver is not ready after %v; the end of its log:\n%s",
					startTimeout, r.logTail("kube-apiserver"))
			}
		}
	}
}

func (r *rig) apiServerFlags(port int) ([]string, error) {
	flags := []string{
		"--etcd-servers=" + r.etcdURL(),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--advertise-address=" + advertiseAddress,
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + r.path("apiserver.crt"),
		"--tls-private-key-file=" + r.path("apiserver.key"),
		"--client-ca-file=" + r.path("ca.crt"),
		"--requestheader-client-ca-file=" + r.path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + r.path("front-proxy-client.crt"),
		"--proxy-client-key-file=" + r.path("front-proxy-client.key"),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + r.path("sa.pub"),
		"--service-account-signing-key-file=" + r.path("sa.key"),
		"--allow-privileged=true",
	}
	if !r.options.saAdmission {
		// No controller makes service accounts here unless the test brings one.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if r.options.auditLog != "" {
		file, err := filepath.Abs(r.options.auditLog)
		if err != nil {
			return nil, err
		}
		policy := r.path("audit-policy.yaml")
		if r.options.auditPolicy != "" {
			if policy, err = filepath.Abs(r.options.auditPolicy); err != nil {
				return nil, err
			}
		} else if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
		// It rotates by size; whoever asked for one file wants one.
		flags = append(flags, "--audit-log-path="+file, "--audit-policy-file="+policy, "--audit-log-maxsize=10240")
	}
	// Last, because the last of equal flags wins.
	return append(flags, r.options.apiFlags...), nil
}

// auditPolicy keeps what one compares two controller managers by: what they
// wrote, and what they read, how often.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [get, list, watch]
- level: RequestResponse
`

func ready(client *http.Client, server string) bool {
	response, err := client.Get(server + "/readyz")
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// freePort asks the kernel. The port may be taken again before it is used;
// see errPortTaken.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port on 127.0.0.1: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// spawn starts a child whose log is NAME.log and whose end comes to r.exited.
func (r *rig) spawn(name string, args ...string) error {
	log, err := os.OpenFile(r.path(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(r.options.binDir, name), args...)
	cmd.Dir = r.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = diesWithParent()
	// Ctrl-C in a terminal goes to the process group: it must not end the
	// control plane under a command that is about to clean up after itself.
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	r.running = append(r.running, cmd)
	go func() { r.exited <- exit{name, cmd.Wait()} }()
	return nil
}

// stop kills: nothing in the data is worth a graceful end, and a graceful
// kube-apiserver waits for its watchers.
func (r *rig) stop() {
	for _, cmd := range r.running {
		_ = cmd.Process.Kill()
	}
	// Files can be removed only after the last write to them.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, cmd := range r.running {
		for ctx.Err() == nil && !errors.Is(cmd.Process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

func (r *rig) died(end exit) error {
	return fmt.Errorf("%s ended unexpectedly (%v); the end of its log:\n%s", end.name, end.err, r.logTail(end.name))
}

func (r *rig) logContains(name, text string) bool {
	log, _ := os.ReadFile(r.path(name + ".log"))
	return bytes.Contains(log, []byte(text))
}

func (r *rig) logTail(name string) string {
	const lines = 15
	log, err := os.ReadFile(r.path(name + ".log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(log), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

func (c *certificate) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}
