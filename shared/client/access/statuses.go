package access

import "net/http"

// Statuses are a route's response statuses by credential. Any other credential gets 401.
type Statuses struct {
	// Credentials of the account. Two tokens are used outside their scope.
	Key, AdminKey, Token, AdminToken, TokenForOtherModels, TokenForOtherOrigin int
	OtherKey, OtherAdminKey, OtherToken                                        int
}

// Every key and token may call the route. own is for the account, others for another account.
func ofAny(own, others int) Statuses {
	return Statuses{
		Key: own, AdminKey: own, Token: own, AdminToken: own, TokenForOtherModels: own,
		TokenForOtherOrigin: http.StatusForbidden,
		OtherKey:            others, OtherAdminKey: others, OtherToken: others,
	}
}

// The route is about one model. A token for other models may not call it.
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
