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

// ofAny are the statuses of a route that every key and every token may call: own is that
// of the account's credentials, others that of another account's.
func ofAny(own, others int) Statuses {
	return Statuses{
		Key: own, AdminKey: own, Token: own, AdminToken: own, TokenForOtherModels: own,
		TokenForOtherOrigin: http.StatusForbidden,
		OtherKey:            others, OtherAdminKey: others, OtherToken: others,
	}
}

// ofModel are those of a route about a model: no token for other models may call it.
func ofModel(own, others int) Statuses {
	statuses := ofAny(own, others)
	statuses.TokenForOtherModels = http.StatusForbidden
	return statuses
}

// ofKeys are those of a route that no token may call.
func ofKeys(own, others int) Statuses {
	statuses := ofModel(own, others)
	statuses.Token, statuses.AdminToken = http.StatusForbidden, http.StatusForbidden
	statuses.OtherToken = http.StatusForbidden
	return statuses
}

// ofAdmins are those of a route that admin keys alone may call.
func ofAdmins(own, others int) Statuses {
	statuses := ofKeys(own, others)
	statuses.Key, statuses.OtherKey = http.StatusForbidden, http.StatusForbidden
	return statuses
}
