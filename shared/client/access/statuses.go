package access

import "net/http"

// Statuses holds a route's response statuses by credential. Any other credential gets 401 on every
// route.
type Statuses struct {
	// Credentials of the account. A token is used within its scope, except for those for other
	// models or another origin.
	Key, AdminKey, Token, AdminToken, TokenForOtherModels, TokenForOtherOrigin int
	// Credentials of another account.
	OtherKey, OtherAdminKey, OtherToken int
}

// ofAny returns the statuses of a route that every key and token may call. own is for the account's
// credentials, and others for those of another account.
func ofAny(own, others int) Statuses {
	return Statuses{
		Key: own, AdminKey: own, Token: own, AdminToken: own, TokenForOtherModels: own,
		TokenForOtherOrigin: http.StatusForbidden,
		OtherKey:            others, OtherAdminKey: others, OtherToken: others,
	}
}

// ofModel returns the statuses of a route about one model, which a token for other models may not
// call.
func ofModel(own, others int) Statuses {
	statuses := ofAny(own, others)
	statuses.TokenForOtherModels = http.StatusForbidden
	return statuses
}

// ofKeys returns the statuses of a route that keys but not tokens may call.
func ofKeys(own, others int) Statuses {
	statuses := ofModel(own, others)
	statuses.Token, statuses.AdminToken = http.StatusForbidden, http.StatusForbidden
	statuses.OtherToken = http.StatusForbidden
	return statuses
}

// ofAdmins returns the statuses of a route that only admin keys may call.
func ofAdmins(own, others int) Statuses {
	statuses := ofKeys(own, others)
	statuses.Key, statuses.OtherKey = http.StatusForbidden, http.StatusForbidden
	return statuses
}
