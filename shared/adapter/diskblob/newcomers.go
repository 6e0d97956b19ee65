package diskblob

import (
	"path/filepath"
	"sync"
)

// newcomers holds the blobs stored since RememberNewcomers, with their prefixes.
type newcomers struct {
	mu sync.Mutex
	// paths is nil while newcomers are not remembered.
	paths map[string]struct{}
}

// add records a blob's path before the blob exists. root is the root of the store.
func (n *newcomers) add(root, path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paths == nil {
		return
	}
	for ; len(path) > len(root); path = filepath.Dir(path) {
		n.paths[path] = struct{}{}
	}
}

// have reports whether a blob was stored at or below a path.
func (n *newcomers) have(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, is := n.paths[path]
	return is
}

// RememberNewcomers makes SetAside skip blobs stored between now and ForgetNewcomers. A search
// for blobs without a record can then run while requests store blobs before their records.
func (s *Store) RememberNewcomers() {
	s.newcomers.mu.Lock()
	defer s.newcomers.mu.Unlock()
	s.newcomers.paths = map[string]struct{}{}
}

func (s *Store) ForgetNewcomers() {
	s.newcomers.mu.Lock()
	defer s.newcomers.mu.Unlock()
	s.newcomers.paths = nil
}
