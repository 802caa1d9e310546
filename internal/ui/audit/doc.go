// Package audit says what will enter a sandbox: to a person before each
// launch, and as lines that two launches can be compared by. Everything in it
// is read off the Launch that is going to run; nothing is worked out anew.
// It does no I/O.
package audit
