import type { z } from '@hono/zod-openapi'
import { type HeaderName, referToHeaders } from './headers.ts'

/** Describes a JSON response with its own headers, for a route's declaration. */
export function describeResponse<T extends z.ZodType>(
  description: string,
  schema: T,
  ...headers: HeaderName[]
) {
  return {
    description,
    headers: referToHeaders(headers),
    content: { 'application/json': { schema } },
  }
}

/**
 * Describes a JSON response that is written as text, because `c.json` would reformat its numbers. The
 * returned type leaves the schema out.
 */
export function describeTextResponse(
  description: string,
  schema: z.ZodType,
): { description: string } {
  return describeResponse(description, schema)
}

/** Describes server-sent events whose data is JSON, for a route's declaration. */
export function describeEventStream(
  description: string,
  schema: z.ZodType,
): { description: string } {
  const response = { description, content: { 'text/event-stream': { schema } } }
  return response
}

/** Describes a response without a body, for a route's declaration. */
export function describeEmptyResponse(description: string, ...headers: HeaderName[]) {
  return { description, headers: referToHeaders(headers) }
}
