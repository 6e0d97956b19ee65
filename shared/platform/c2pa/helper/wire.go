package helper

import "cutroom/shared/platform/fence/loaded"

// Found is what this program, run as the search, tells of the library.
type Found struct {
	Path    string
	Version string
	// Loaded is what loading it takes.
	Loaded loaded.Libraries
	// Problem is why there is no library that can be used.
	Problem string
}

// Order is what a helper is to do, the first line that it reads. Its files are the
// descriptors from 3 on: what is read or signed, what is written, the ingredients.
type Order struct {
	Sign            bool
	Settings, MIME  string
	Manifest, Chain string       `json:",omitempty"`
	Algorithm       int32        `json:",omitempty"`
	Ingredients     []Ingredient `json:",omitempty"`
}

// Ingredient is a file that another was made of, as c2pa.Ingredient describes it.
type Ingredient struct{ JSON, MIME string }

// Answer is a line that a helper writes. One with ToSign asks for a signature, the next
// line that it reads; any other is the last.
type Answer struct {
	ToSign    []byte `json:",omitempty"`
	Done      bool   `json:",omitempty"`
	None      bool   `json:",omitempty"`
	Elsewhere bool   `json:",omitempty"`
	Report    string `json:",omitempty"`
	Problem   string `json:",omitempty"`
}
