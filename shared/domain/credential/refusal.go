package credential

import "cutroom/shared/domain/fault"

// The refusals of credentials that have no parameters. Stores return them too, so
// that a caller reads the same whatever keeps the records.
var (
	// ErrKeyNotFound is returned for a key that does not exist for the account.
	ErrKeyNotFound = fault.New(fault.NotFound, "Key not found.")
	// ErrTokenNotFound is returned for a client token that does not exist.
	ErrTokenNotFound = fault.New(fault.NotFound, "Token not found.")
	// ErrKeyExists is returned for a new key whose secret or id is taken.
	ErrKeyExists = fault.New(fault.Conflict, "The key exists already.")
	// ErrKeyRequired is returned to a client token where only a key is accepted.
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
