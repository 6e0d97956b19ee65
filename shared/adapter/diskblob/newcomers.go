package diskblob

import (
	"path/filepath"
	"sync"
)

// newcomers records the blobs stored since RememberNewcomers, and their prefixes.
type newcomers struct {
	mu    sync.Mutex
	paths map[string]struct{} // nil while newcomers are not remembered
}

// add must be called before the blob exists.
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

// have reports whether a newcomer is stored at or below a path.
func (n *newcomers) have(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, is := n.paths[path]
	return is
}

// RememberNewcomers makes SetAside skip blobs that are stored until ForgetNewcomers is called. This
// allows searching for blobs without a record while requests store blobs.
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
