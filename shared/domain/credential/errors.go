package credential

import "cutroom/shared/domain/fault"

// Stores return these errors too, so that the messages are the same for every store.
var (
	ErrKeyNotFound   = fault.New(fault.NotFound, "Key not found.")
	ErrTokenNotFound = fault.New(fault.NotFound, "Token not found.")
	// ErrKeyExists means that the secret or id of a new key is already in use.
	ErrKeyExists        = fault.New(fault.Conflict, "The key already exists.")
	ErrKeyRequired      = fault.New(fault.Forbidden, "A client token cannot be used here; a permanent key is required.")
	ErrOriginNotAllowed = fault.New(fault.Forbidden, "The client token does not allow this origin.")
)

func ModelNotAllowed(id string) *fault.Error {
	return fault.New(fault.Forbidden, "The client token does not allow the model %s.", id)
}

func KeyModelNotAllowed(id string) *fault.Error {
	return fault.New(fault.Forbidden, "The API key does not allow the model %s.", id)
}

func KeyInvalid(id string) *fault.Error {
	return fault.New(fault.Unauthorized, "The key %s does not work.", id)
}
