package webrtc

import (
	"fmt"

	"github.com/pion/stun/v3"

	"cutroom/shared/service/realtime/room"
)

// minRelaySecret is how long the secret of relays is at least, in bytes.
const minRelaySecret = 16

// relays returns the TURN servers for clients.
//
// Errors: URLs that are of no TURN server; a secret that is missing or too short. Each names the setting.
func (c Config) relays() (room.Relays, error) {
	for _, text := range c.Relays {
		url, err := stun.ParseURI(text)
		if err != nil || url.Scheme != stun.SchemeTypeTURN && url.Scheme != stun.SchemeTypeTURNS {
			return room.Relays{}, fmt.Errorf("CUTROOM_RTC_TURN: %q is not the URL of a TURN server, "+
				"such as turns:turn.example.com:443?transport=tcp", text)
		}
	}
	if len(c.Relays) > 0 && len(c.RelaySecret) < minRelaySecret {
		return room.Relays{}, fmt.Errorf("CUTROOM_RTC_TURN_SECRET: it has %d bytes, and has to have %d or more",
			len(c.RelaySecret), minRelaySecret)
	}
	return room.Relays{URLs: c.Relays, Secret: []byte(c.RelaySecret)}, nil
}
