package helper

// Order is the first line that the helper reads. The files are descriptors 3 and up: the file to
// read or sign, the file to write, and the ingredients.
type Order struct {
	Sign            bool
	Settings, MIME  string
	Manifest, Chain string       `json:",omitempty"`
	Algorithm       int32        `json:",omitempty"`
	Ingredients     []Ingredient `json:",omitempty"`
}

type Ingredient struct{ JSON, MIME string }

// Answer is a line that a helper writes. A line with ToSign requests a signature, which the helper
// then reads as the next line. Any other line is the last.
type Answer struct {
	ToSign    []byte `json:",omitempty"`
	Done      bool   `json:",omitempty"`
	None      bool   `json:",omitempty"`
	Elsewhere bool   `json:",omitempty"`
	Report    string `json:",omitempty"`
	Problem   string `json:",omitempty"`
}
