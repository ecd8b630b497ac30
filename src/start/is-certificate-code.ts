/** Returns whether an error code of Node or OpenSSL means that a certificate is not accepted. */
export function isCertificateCode(code: string): boolean {
  return /CERT|ISSUER|SIGNATURE/.test(code)
}
