package mcpserver

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"sync"
)

// shortestKey is the minimum length of text to mask, in bytes, because shorter text could be part
// of a word. The service's keys are longer.
const shortestKey = 8

// Mask removes keys from text for agents and logs, because a server's message may repeat a key.
type Mask struct {
	mu   sync.Mutex
	keys [][]byte
}

func (m *Mask) Hide(key string) {
	if len(key) < shortestKey {
		return
	}
	escaped, _ := json.Marshal(key) // marshaling a string cannot fail
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, form := range [][]byte{[]byte(key), bytes.Trim(escaped, `"`)} {
		if !slices.ContainsFunc(m.keys, func(known []byte) bool { return bytes.Equal(known, form) }) {
			m.keys = append(m.keys, form)
		}
	}
}

// Writer returns a writer that masks keys. A key must not be split between two writes.
func (m *Mask) Writer(to io.Writer) io.Writer { return maskedWriter{m, to} }

type maskedWriter struct {
	mask *Mask
	to   io.Writer
}

func (w maskedWriter) Write(p []byte) (int, error) {
	w.mask.mu.Lock()
	masked := p
	for _, key := range w.mask.keys {
		masked = bytes.ReplaceAll(masked, key, []byte("[key]"))
	}
	w.mask.mu.Unlock()
	if _, err := w.to.Write(masked); err != nil {
		return 0, err
	}
	return len(p), nil
}
