package webrtc

import (
	"fmt"

	"github.com/pion/stun/v4"

	"cutroom/shared/service/realtime/room"
)

const minRelaySecret = 16

// Errors: an invalid TURN server URL, or a missing or short secret. Each error names the setting.
func (c Config) relays() (room.Relays, error) {
	for _, text := range c.Relays {
		url, err := stun.ParseURI(text)
		if err != nil || url.Scheme != stun.SchemeTypeTURN && url.Scheme != stun.SchemeTypeTURNS {
			return room.Relays{}, fmt.Errorf("CUTROOM_RTC_TURN: %q must be the URL of a TURN server, "+
				"such as turns:turn.example.com:443?transport=tcp", text)
		}
	}
	if len(c.Relays) > 0 && len(c.RelaySecret) < minRelaySecret {
		return room.Relays{}, fmt.Errorf("CUTROOM_RTC_TURN_SECRET: is %d bytes long, must be at least %d",
			len(c.RelaySecret), minRelaySecret)
	}
	return room.Relays{URLs: c.Relays, Secret: []byte(c.RelaySecret)}, nil
}
