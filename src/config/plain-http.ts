const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/

/** Reports whether a host name or address is on this machine. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host)
}

/** Reports whether a call to this URL would leave the machine unencrypted. */
export function isPlainRemote(url: URL): boolean {
  return url.protocol === 'http:' && !isLoopback(url.hostname)
}
