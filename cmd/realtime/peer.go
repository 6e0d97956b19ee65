package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// peerAddress reads CUTROOM_PEER_ADDR, the IP address and port for other instances. The default IP is the
// machine's own, and the default port is the listener's. If the setting is empty, it returns "".
func peerAddress(setting string, listener net.Listener) (string, error) {
	if setting == "" {
		return "", nil
	}
	address, err := readPeer(setting, listener)
	if err != nil {
		return "", fmt.Errorf("CUTROOM_PEER_ADDR: %w", err)
	}
	return address.String(), nil
}

func readPeer(setting string, listener net.Listener) (netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(setting)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(cmp.Or(portText, "0"), 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not a port", portText)
	}
	if port == 0 {
		own, _ := listener.Addr().(*net.TCPAddr)
		port = uint64(own.AddrPort().Port())
	}
	if host == "" {
		ip, err := ownAddress()
		return netip.AddrPortFrom(ip, uint16(port)), err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not an IP address", host)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// ownAddress returns the machine's first IPv4 address that other machines can reach.
func ownAddress() (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, one := range all {
		found, isIP := one.(*net.IPNet)
		if !isIP {
			continue
		}
		if ip, ok := netip.AddrFromSlice(found.IP); ok && ip.Unmap().Is4() && found.IP.IsGlobalUnicast() {
			return ip.Unmap(), nil
		}
	}
	return netip.Addr{}, errors.New("this machine has no IPv4 address: set one in CUTROOM_PEER_ADDR")
}
