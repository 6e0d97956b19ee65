// Package origin is what a file's Content Credentials say of where it comes from, and
// whether that holds (docs/provenance.md).
package origin

import "errors"

// ErrNoReader means that a machine has nothing that reads Content Credentials.
var ErrNoReader = errors.New("origin: nothing here reads Content Credentials")

// The kinds of digital sources of IPTC's vocabulary that are trained models' work: what one
// generated, and what one edited.
const (
	Generated = "trainedAlgorithmicMedia"
	Composite = "compositeWithTrainedAlgorithmicMedia"
)

// The states of a file's Content Credentials.
const (
	// Trusted means that picture, sound and credentials were not changed, and that the
	// signer's chain ends at a certificate that the reader trusts.
	Trusted = "trusted"
	// Valid means that picture, sound and credentials were not changed since the file was
	// signed. No authority confirms the signer's name. C2PA does not check some other
	// bytes, such as padding.
	Valid = "valid"
	// Invalid means that the file was changed, or that its credentials cannot be believed.
	Invalid = "invalid"
	// None means that the file has none, and Unreadable that nothing can be said of it.
	None       = "none"
	Unreadable = "unreadable"
)

// Report is what a file's Content Credentials say, and whether that holds.
type Report struct {
	// State is Trusted, Valid, Invalid, None or Unreadable.
	State string `json:"state"`
	// Own is true if it is this service that has signed.
	Own bool `json:"own,omitempty"`
	// Problems are why they are invalid, in the words of C2PA and of the library, or why
	// the file is unreadable.
	Problems []string `json:"problems,omitempty"`
	Record
}

// Record is what one signer says of a file.
type Record struct {
	// SignedBy and CommonName are of the signer's certificate.
	SignedBy   string `json:"signed_by"`
	CommonName string `json:"common_name,omitempty"`
	// Generator is the program that wrote it.
	Generator string `json:"generator,omitempty"`
	// Actions are what was done, in their order.
	Actions []Action `json:"actions"`
	// Inputs are the files that it was made of.
	Inputs []Input `json:"inputs,omitempty"`
}

// Action is something that was done to make a file.
type Action struct {
	// Action is C2PA's name of it, such as "c2pa.created".
	Action string `json:"action"`
	// When is the signer's word, in RFC 3339; empty if there is none.
	When string `json:"when,omitempty"`
	// SourceType is the last word of IPTC's vocabulary of digital sources.
	SourceType string `json:"source_type,omitempty"`
	// Agent is what did it, and Model the model by this service's name.
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
}

// ByModel reports whether a trained model made or edited the file in this step.
func (a Action) ByModel() bool { return a.SourceType == Generated || a.SourceType == Composite }

// Input is a file that another was made of.
type Input struct {
	// Relationship is parentOf for what was edited, inputTo and componentOf for others.
	Relationship string `json:"relationship"`
	Format       string `json:"format,omitempty"`
	// SHA256 is the hash of its bytes in hex; empty if that was not recorded.
	SHA256 string `json:"sha256,omitempty"`
	// Problems are why its own credentials did not hold when it was used, by the word of who
	// signed what was made of it.
	Problems []string `json:"problems,omitempty"`
	// Record is what its own credentials say, whether they held or not; nil if it had none.
	Record *Record `json:"record,omitempty"`
}

// ByModel reports whether a trained model made or edited the file, or what it was made of.
func (r Record) ByModel() bool {
	for _, action := range r.Actions {
		if action.ByModel() {
			return true
		}
	}
	for _, in := range r.Inputs {
		if in.Record != nil && in.Record.ByModel() {
			return true
		}
	}
	return false
}
