// Package origin describes a file's Content Credentials and the result of verifying them (docs/provenance.md).
package origin

import "errors"

var ErrNoReader = errors.New("origin: no library for Content Credentials is installed")

// These are IPTC's digital source types for media made by trained models: generated and edited.
const (
	Generated = "trainedAlgorithmicMedia"
	Composite = "compositeWithTrainedAlgorithmicMedia"
)

const (
	// Trusted means that the picture, sound and credentials are unchanged, and that the signer's
	// certificate chain ends at a trusted certificate.
	Trusted = "trusted"
	// Valid means that the picture, sound and credentials are unchanged since signing, but no authority confirms
	// the signer's name. Some other bytes, such as padding, are not checked by C2PA.
	Valid = "valid"
	// Invalid means that the file was changed, or that its credentials cannot be trusted.
	Invalid = "invalid"
	// None means that the file has no Content Credentials. Unreadable means that they cannot be read.
	None       = "none"
	Unreadable = "unreadable"
)

type Report struct {
	State string `json:"state"`
	Own   bool   `json:"own,omitempty"`
	// Problems explains why the state is Invalid or Unreadable, in the terms of C2PA and the library.
	Problems []string `json:"problems,omitempty"`
	Record
}

// Record is a signer's claim about a file.
type Record struct {
	// Both names are from the signer's certificate.
	SignedBy   string   `json:"signed_by"`
	CommonName string   `json:"common_name,omitempty"`
	Generator  string   `json:"generator,omitempty"`
	Actions    []Action `json:"actions"`
	Inputs     []Input  `json:"inputs,omitempty"`
}

type Action struct {
	// Action is C2PA's name for the step, such as "c2pa.created".
	Action string `json:"action"`
	// When is the time that the signer claims, in RFC 3339 format. It may be empty.
	When string `json:"when,omitempty"`
	// SourceType is the last part of an IPTC digital source type.
	SourceType string `json:"source_type,omitempty"`
	// Agent is the tool that performed the step.
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
}

func (a Action) ByModel() bool { return a.SourceType == Generated || a.SourceType == Composite }

// Input is a file from which the signed file was made.
type Input struct {
	// Relationship is parentOf for the file that was edited, and inputTo or componentOf for others.
	Relationship string `json:"relationship"`
	Format       string `json:"format,omitempty"`
	SHA256       string `json:"sha256,omitempty"` // in hex
	// Problems explains why the input's credentials were invalid when the input was used.
	Problems []string `json:"problems,omitempty"`
	// Record is the claim about the input, whether valid or not.
	Record *Record `json:"record,omitempty"`
}

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
