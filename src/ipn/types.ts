import type { Notification } from '../gateway/read-notification.ts'
import type { SignatureVerdict } from '../gateway/signature.ts'

/** A notification request as it was received: nothing in it has been checked yet. */
export type IpnRequest = {
  format: 'json' | 'form'
  body: string
  contentType: string
  /** The client's IP address. */
  address: string
  headers: Record<string, string>
}

/** A notification that passed every check and is about to be stored. */
export type Arrival = {
  merchantCode: string
  /** SHA-256 of merchant code and raw body, in hexadecimal. */
  fingerprint: string
  notification: Notification
  verdict: SignatureVerdict
  body: string
  contentType: string
  address: string
  headers: Record<string, string>
  /** The span that stores it; undefined without tracing. */
  traceParent?: string | undefined
}
