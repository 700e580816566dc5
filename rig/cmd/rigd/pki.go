package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki holds what is needed after the files are written.
type pki struct {
	ca, admin, controllerManager, scheduler *certificate
}

type certificate struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
	keyPEM  []byte
}

func (c *certificate) tls() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.cert.Raw}, PrivateKey: c.key}
}

// writePKI makes every key of the rig. All are ECDSA P-256: seven RSA keys
// would cost more than the rest of the start.
func writePKI(dir string) (*pki, error) {
	ca, err := issue(nil, authority("steersman-rig-ca"))
	if err != nil {
		return nil, err
	}
	frontProxyCA, err := issue(nil, authority("steersman-rig-front-proxy-ca"))
	if err != nil {
		return nil, err
	}
	var failed error
	signed := func(by *certificate, template *x509.Certificate) *certificate {
		made, err := issue(by, template)
		if err != nil {
			failed = err
		}
		return made
	}
	keys := &pki{
		ca:                ca,
		admin:             signed(ca, client("kubernetes-admin", "system:masters")),
		controllerManager: signed(ca, client("system:kube-controller-manager")),
		scheduler:         signed(ca, client("system:kube-scheduler")),
	}
	apiServer := signed(ca, serving())
	frontProxy := signed(frontProxyCA, client("front-proxy-client"))
	if failed != nil {
		return nil, failed
	}
	sa, err := newKey()
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&sa.PublicKey)
	if err != nil {
		return nil, err
	}
	saPEM, err := keyPEM(sa)
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{
		"ca.crt": ca.certPEM,
		// The controllers that sign certificate requests need the key too.
		"ca.key":                 ca.keyPEM,
		"apiserver.crt":          apiServer.certPEM,
		"apiserver.key":          apiServer.keyPEM,
		"front-proxy-ca.crt":     frontProxyCA.certPEM,
		"front-proxy-client.crt": frontProxy.certPEM,
		"front-proxy-client.key": frontProxy.keyPEM,
		"sa.key":                 saPEM,
		"sa.pub":                 pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// === templates ===

func authority(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

// client is a user: Kubernetes takes the name and the groups from the subject.
func client(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func serving() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceAddress), net.ParseIP(advertiseAddress)},
	}
}

// === signing ===

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// issue signs by the authority, or by itself when there is none.
func issue(by *certificate, template *x509.Certificate) (*certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// An hour back, for containers whose clock is behind.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(30 * 24 * time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	encoded, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	return &certificate{
		cert:    cert,
		key:     key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  encoded,
	}, nil
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	// SEC 1, because that is what every client of Kubernetes reads.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// === kubeconfigs ===

func (r *rig) writeKubeconfigs(keys *pki) error {
	files := map[string]*certificate{
		r.adminKubeconfig():                     keys.admin,
		r.path("controller-manager.kubeconfig"): keys.controllerManager,
		r.path("scheduler.kubeconfig"):          keys.scheduler,
	}
	if r.options.kubeconfig != "" {
		files[r.options.kubeconfig] = keys.admin
	}
	for path, user := range files {
		// A file that is there already keeps its mode, so it goes first.
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.WriteFile(path, kubeconfig(r.server, keys.ca, user), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig embeds its certificates, so that the file can be copied.
func kubeconfig(server string, ca, user *certificate) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: rig
contexts:
- name: rig
  context: {cluster: rig, user: %[2]q}
clusters:
- name: rig
  cluster:
    server: %[1]s
    certificate-authority-data: %[3]s
users:
- name: %[2]q
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`, server, user.cert.Subject.CommonName, encode(ca.certPEM), encode(user.certPEM), encode(user.keyPEM))
}
