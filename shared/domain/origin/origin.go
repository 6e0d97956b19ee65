// Package origin describes a file's Content Credentials and their verification (docs/provenance.md).
package origin

import "errors"

// ErrNoReader means that this machine has no library for Content Credentials.
var ErrNoReader = errors.New("origin: no library for Content Credentials is installed")

// The digital source types of IPTC's vocabulary for trained models: generated and edited.
const (
	Generated = "trainedAlgorithmicMedia"
	Composite = "compositeWithTrainedAlgorithmicMedia"
)

const (
	// Trusted means that the picture, sound and credentials are unchanged, and that the signer's
	// chain ends at a certificate that the reader trusts.
	Trusted = "trusted"
	// Valid means that the picture, sound and credentials are unchanged since signing, but no
	// authority confirms the signer's name. C2PA does not check some other bytes, such as padding.
	Valid = "valid"
	// Invalid means that the file was changed, or that its credentials are not credible.
	Invalid = "invalid"
	// None means that the file has no Content Credentials. Unreadable means that they cannot be read.
	None       = "none"
	Unreadable = "unreadable"
)

// Report is the verification of a file's Content Credentials.
type Report struct {
	State string `json:"state"`
	// Own is true if this service has signed the file.
	Own bool `json:"own,omitempty"`
	// Problems explains why the state is Invalid, in the words of C2PA and of the library, or
	// Unreadable.
	Problems []string `json:"problems,omitempty"`
	Record
}

// Record is one signer's claim about a file.
type Record struct {
	// SignedBy and CommonName are from the signer's certificate.
	SignedBy   string `json:"signed_by"`
	CommonName string `json:"common_name,omitempty"`
	// Generator is the program that wrote the claim.
	Generator string `json:"generator,omitempty"`
	// Actions lists the steps that made the file, in order.
	Actions []Action `json:"actions"`
	Inputs  []Input  `json:"inputs,omitempty"`
}

type Action struct {
	// Action is C2PA's name for the step, such as "c2pa.created".
	Action string `json:"action"`
	// When is the time that the signer claims, in RFC 3339 format, or empty. It is not verified.
	When string `json:"when,omitempty"`
	// SourceType is the last part of an IPTC digital source type.
	SourceType string `json:"source_type,omitempty"`
	// Agent is the tool of the step. Model is the model, named as in this service.
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
}

// ByModel reports whether a trained model made or edited the file in this step.
func (a Action) ByModel() bool { return a.SourceType == Generated || a.SourceType == Composite }

// Input is a file that was used to make another file.
type Input struct {
	// Relationship is parentOf for the edited file, and inputTo or componentOf for others.
	Relationship string `json:"relationship"`
	Format       string `json:"format,omitempty"`
	// SHA256 is the hash of its bytes in hex, or empty.
	SHA256 string `json:"sha256,omitempty"`
	// Problems explains why the input's credentials were invalid when it was used, as reported by
	// the signer of the result.
	Problems []string `json:"problems,omitempty"`
	// Record is the input's claim, valid or not, or nil.
	Record *Record `json:"record,omitempty"`
}

// ByModel reports whether a trained model made or edited the file or one of its inputs.
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
