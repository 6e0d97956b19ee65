package access

import "net/http"

// Statuses are the expected response statuses of a route, by credential. Any other credential gets 401.
type Statuses struct {
	// These are credentials of the account. The last two are tokens used outside their scope.
	Key, AdminKey, Token, AdminToken, TokenForOtherModels, TokenForOtherOrigin int
	OtherKey, OtherAdminKey, OtherToken                                        int
}

// ofAny is for routes that every key and token may call. own is the status for the account's own credentials, and
// others is the status for another account's credentials.
func ofAny(own, others int) Statuses {
	return Statuses{
		Key: own, AdminKey: own, Token: own, AdminToken: own, TokenForOtherModels: own,
		TokenForOtherOrigin: http.StatusForbidden,
		OtherKey:            others, OtherAdminKey: others, OtherToken: others,
	}
}

// ofModel is for routes about one model. They reject tokens for other models.
func ofModel(own, others int) Statuses {
	statuses := ofAny(own, others)
	statuses.TokenForOtherModels = http.StatusForbidden
	return statuses
}

func ofKeys(own, others int) Statuses {
	statuses := ofModel(own, others)
	statuses.Token, statuses.AdminToken = http.StatusForbidden, http.StatusForbidden
	statuses.OtherToken = http.StatusForbidden
	return statuses
}

func ofAdmins(own, others int) Statuses {
	statuses := ofKeys(own, others)
	statuses.Key, statuses.OtherKey = http.StatusForbidden, http.StatusForbidden
	return statuses
}
