import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Notification } from '../gateway/notification.ts'
import type { VERDICTS } from '../metrics.ts'

/** A notification request as it was received: nothing in it has been checked yet. */
export type IpnRequest = {
  format: 'json' | 'form'
  body: string
}

/** The response to a notification request. */
export type IpnAnswer = {
  status: ContentfulStatusCode
  verdict: (typeof VERDICTS)[number]
  /** The reason for a refusal: sent as `respmsg`, and logged. */
  why?: string
  headers?: Record<string, string>
}

/** The database is behind: the notification itself is valid and will be accepted a moment later. */
export const OVERLOADED = {
  status: 503,
  verdict: 'overloaded',
  why: 'not stored, send it again',
  headers: { 'retry-after': '1' },
} satisfies IpnAnswer

/** A notification that passed every check and is about to be stored. */
export type ReceivedNotification = Notification & { address: string }

/** What notifications of one text mean, for its place among the readings of the text. */
export type PlacedReading = {
  notification: ReceivedNotification
  reading: number
  /** How often it was sent to a place. */
  tries: number
  /** The places in the batch of the notifications that mean this. */
  items: number[]
}
