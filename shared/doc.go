// Package shared has no code. ARCHITECTURE.md describes the layers below it, and
// layers_test.go checks which packages may import which.
package shared
