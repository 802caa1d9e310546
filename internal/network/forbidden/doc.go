// Package forbidden holds the addresses that no tier but full may reach:
// those that are not the internet. It is data with a source for each range,
// shared by what filters packets (tier inet) and what dials (tier allow).
//
// It is pure. The host's own addresses and networks are added by who knows
// them.
package forbidden
