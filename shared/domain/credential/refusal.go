package credential

import "cutroom/shared/domain/fault"

// Refusals without parameters. Stores return them too, so the text is the same for every store.
var (
	ErrKeyNotFound   = fault.New(fault.NotFound, "Key not found.")
	ErrTokenNotFound = fault.New(fault.NotFound, "Token not found.")
	// ErrKeyExists is returned for a new key whose secret or id is taken.
	ErrKeyExists = fault.New(fault.Conflict, "The key exists already.")
	// ErrKeyRequired is returned to a client token if only a key is accepted.
	ErrKeyRequired = fault.New(fault.Forbidden, "A client token cannot be used here; a permanent key is required.")
	// ErrOriginNotAllowed is returned to a client token from an origin outside its scope.
	ErrOriginNotAllowed = fault.New(fault.Forbidden, "The client token does not allow this origin.")
)

// ModelNotAllowed returns the refusal of a model outside a client token's scope.
func ModelNotAllowed(id string) *fault.Error {
	return fault.New(fault.Forbidden, "The client token does not allow the model %s.", id)
}

// KeyModelNotAllowed returns the refusal of a model outside the limits of a key.
func KeyModelNotAllowed(id string) *fault.Error {
	return fault.New(fault.Forbidden, "The API key is not allowed the model %s.", id)
}

// KeyInvalid returns the refusal of a call by a key that is unknown or revoked.
func KeyInvalid(id string) *fault.Error {
	return fault.New(fault.Unauthorized, "The key %s does not work.", id)
}
