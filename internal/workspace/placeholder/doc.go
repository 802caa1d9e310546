// Package placeholder makes files and folders that stand in for absent ones,
// so that something can be mounted over them, and takes them away again. It
// knows how several sessions share one, and how one that was killed is
// followed. It imports beneath, and trusts nothing in the folders it writes
// to.
package placeholder
