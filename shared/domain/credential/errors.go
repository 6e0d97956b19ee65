package credential

import "cutroom/shared/domain/fault"

// Errors without parameters. Stores return them too, so that the text is the same for every store.
var (
	ErrKeyNotFound   = fault.New(fault.NotFound, "Key not found.")
	ErrTokenNotFound = fault.New(fault.NotFound, "Token not found.")
	// ErrKeyExists reports a new key whose secret or id is already in use.
	ErrKeyExists = fault.New(fault.Conflict, "The key already exists.")
	// ErrKeyRequired rejects a client token where only a permanent key is accepted.
	ErrKeyRequired = fault.New(fault.Forbidden, "A client token cannot be used here; a permanent key is required.")
	// ErrOriginNotAllowed rejects a client token from an origin outside its scope.
	ErrOriginNotAllowed = fault.New(fault.Forbidden, "The client token does not allow this origin.")
)

// ModelNotAllowed returns the error for a model outside a client token's scope.
func ModelNotAllowed(id string) *fault.Error {
	return fault.New(fault.Forbidden, "The client token does not allow the model %s.", id)
}

// KeyModelNotAllowed returns the error for a model outside the limits of a key.
func KeyModelNotAllowed(id string) *fault.Error {
	return fault.New(fault.Forbidden, "The API key does not allow the model %s.", id)
}

// KeyInvalid returns the error for a call with an unknown or revoked key.
func KeyInvalid(id string) *fault.Error {
	return fault.New(fault.Unauthorized, "The key %s does not work.", id)
}
