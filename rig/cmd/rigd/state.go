package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A running rig is a file in the state directory, locked by its rigd. The lock
// is the truth, not the pid: the kernel drops it however the process ends, and
// a pid may belong to somebody else by then.

// record is our own entry; the lock lives as long as the file is open.
type record struct {
	file *os.File
	path string
}

type recorded struct {
	Pid int    `json:"pid"`
	Dir string `json:"dir"`
	// Foreground is a rig without a command, the kind that `down` ends.
	Foreground bool `json:"foreground"`
	// Keep is --keep-data: Dir outlives the rig.
	Keep bool `json:"keep"`
}

const (
	dirPrefix = "steersman-rig-"
	// etcd allocates two log segments of 64 MiB before the first write, and
	// grows; containers often have 64 MiB in all.
	shmBytesMin = 2 << 30
)

// makeDir makes the private directory of a rig, in memory where there is
// enough of it.
func makeDir(keep bool) (string, error) {
	parent := os.TempDir()
	const shm = "/dev/shm"
	if !keep && freeBytes(shm) >= shmBytesMin {
		if dir, err := os.MkdirTemp(shm, dirPrefix); err == nil {
			return dir, nil
		}
	}
	// Mode 0700: it holds keys and the socket of etcd.
	return os.MkdirTemp(parent, dirPrefix)
}

func freeBytes(path string) uint64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return 0
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize)
}

func register(stateDir string, rig recorded) (*record, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, err
	}
	// Written and locked under a name that readers skip, then renamed: nobody
	// ever sees it unlocked or half written.
	name := filepath.Base(rig.Dir)
	temporary := filepath.Join(stateDir, name+".new")
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("locking %s: %w", temporary, err)
	}
	if err := json.NewEncoder(file).Encode(rig); err != nil {
		return nil, err
	}
	path := filepath.Join(stateDir, name+".json")
	if err := os.Rename(temporary, path); err != nil {
		return nil, err
	}
	return &record{file, path}, nil
}

func (r *record) remove() {
	_ = os.Remove(r.path)
	_ = r.file.Close()
}

// visit calls each with every recorded rig and whether its rigd lives.
func visit(stateDir string, each func(path string, rig recorded, alive bool)) {
	paths, _ := filepath.Glob(filepath.Join(stateDir, "*.json"))
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		var rig recorded
		if json.NewDecoder(file).Decode(&rig) == nil {
			// Shared, so that two visitors do not take each other for the owner.
			err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
			each(path, rig, errors.Is(err, syscall.EWOULDBLOCK))
		}
		file.Close()
	}
}

// sweep removes what killed rigs left behind.
func sweep(stateDir string) {
	visit(stateDir, func(path string, rig recorded, alive bool) {
		if alive {
			return
		}
		if rig.Keep || os.RemoveAll(rig.Dir) == nil {
			_ = os.Remove(path)
		}
	})
}

// down ends every foreground rig and waits for its end.
func down(stateDir string) error {
	sweep(stateDir)
	var ended int
	var failed error
	visit(stateDir, func(path string, rig recorded, alive bool) {
		if !alive || !rig.Foreground {
			return
		}
		if err := syscall.Kill(rig.Pid, syscall.SIGTERM); err != nil {
			failed = fmt.Errorf("process %d: %w", rig.Pid, err)
			return
		}
		deadline := time.Now().Add(15 * time.Second)
		for {
			if _, err := os.Stat(path); os.IsNotExist(err) {
				break
			}
			if time.Now().After(deadline) {
				failed = fmt.Errorf("process %d does not end; kill -9 %d ends it with all its children", rig.Pid, rig.Pid)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		ended++
		fmt.Printf("ended the rig of process %d\n", rig.Pid)
	})
	if failed == nil && ended == 0 {
		fmt.Println("no rig is running (`cargo xtask k8s up` starts one)")
	}
	return failed
}
