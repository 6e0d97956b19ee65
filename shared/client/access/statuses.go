package access

import "net/http"

// Statuses are a route's response statuses by the credential of the call. Any other
// credential gets 401 on every route.
type Statuses struct {
	// Credentials of the account. A token is called within its scope, unless it is
	// for other models or another origin.
	Key, AdminKey, Token, AdminToken, TokenForOtherModels, TokenForOtherOrigin int
	// Credentials of another account.
	OtherKey, OtherAdminKey, OtherToken int
}

// ofAny are the statuses of a route that every key and token may call: own for the account's
// credentials, others for another account's.
func ofAny(own, others int) Statuses {
	return Statuses{
		Key: own, AdminKey: own, Token: own, AdminToken: own, TokenForOtherModels: own,
		TokenForOtherOrigin: http.StatusForbidden,
		OtherKey:            others, OtherAdminKey: others, OtherToken: others,
	}
}

// ofModel are the statuses of a route about a model, which a token for other models may not call.
func ofModel(own, others int) Statuses {
	statuses := ofAny(own, others)
	statuses.TokenForOtherModels = http.StatusForbidden
	return statuses
}

// ofKeys are the statuses of a route for keys but not tokens.
func ofKeys(own, others int) Statuses {
	statuses := ofModel(own, others)
	statuses.Token, statuses.AdminToken = http.StatusForbidden, http.StatusForbidden
	statuses.OtherToken = http.StatusForbidden
	return statuses
}

// ofAdmins are the statuses of a route for admin keys only.
func ofAdmins(own, others int) Statuses {
	statuses := ofKeys(own, others)
	statuses.Key, statuses.OtherKey = http.StatusForbidden, http.StatusForbidden
	return statuses
}
