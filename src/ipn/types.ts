import type { Notification } from '../gateway/read-notification.ts'
import type { TextOrigin } from '../gateway/request-text.ts'
import type { SignatureVerdict } from '../gateway/signature.ts'

/** A notification request as it was received: nothing in it has been checked yet. */
export type IpnRequest = {
  format: 'json' | 'form'
  body: string
  /** The client's IP address. */
  address: string
}

/**
 * A way to cut a signed text into members. The hash joins values without names or separators, so one hash is
 * valid for many readings.
 */
export type Reading = {
  /** SHA-256 of the merchant code and the signed members, in hexadecimal. */
  fingerprint: string
  /** The start of the signed hash, equal for all readings of a text; undefined unless the hash verified. */
  signedKey: string | undefined
  /** In published form: only members that the gateway is known to sign. */
  published: boolean
  /** Not the reading that is trusted: it leads to a query, but settles and names nothing. */
  hint: boolean
  /** The same hash was received with another reading. */
  recut: boolean
  /** Whether the signed text may be that of a request. */
  origin: TextOrigin
}

/** A notification that passed every check and is about to be stored. */
export type Arrival = Reading & {
  merchantCode: string
  notification: Notification
  verdict: SignatureVerdict
  body: string
  address: string
  /** The span that stores it; undefined without tracing. */
  traceParent?: string | undefined
}
