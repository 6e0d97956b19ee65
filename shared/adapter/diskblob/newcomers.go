package diskblob

import (
	"path/filepath"
	"sync"
)

// newcomers are the blobs that are stored while they are remembered, with the prefixes
// that they are below.
type newcomers struct {
	mu sync.Mutex
	// paths is nil while they are not remembered.
	paths map[string]struct{}
}

// add notes a blob's path, before it is there. Root is that of the store.
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

// have reports whether a blob came to a path, or below it.
func (n *newcomers) have(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, is := n.paths[path]
	return is
}

// RememberNewcomers makes SetAside leave alone what is stored from now on, until
// ForgetNewcomers: what looks for blobs that no record knows may then run while requests
// store others, whose records come later.
func (s *Store) RememberNewcomers() {
	s.newcomers.mu.Lock()
	defer s.newcomers.mu.Unlock()
	s.newcomers.paths = map[string]struct{}{}
}

// ForgetNewcomers ends what RememberNewcomers began.
func (s *Store) ForgetNewcomers() {
	s.newcomers.mu.Lock()
	defer s.newcomers.mu.Unlock()
	s.newcomers.paths = nil
}
