/** A message of the protocol (Postgres 17, 53.7). The first one of a client has no type. */
export type WireMessage = { type: string; bytes: Buffer }

/** Creates a function that cuts a stream, chunk by chunk, into its messages. */
export function createMessageReader(sender: 'client' | 'server'): (chunk: Buffer) => WireMessage[] {
  let rest = Buffer.alloc(0)
  let isFirst = sender === 'client'
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    const messages: WireMessage[] = []
    for (;;) {
      const typeBytes = isFirst ? 0 : 1
      if (rest.length < typeBytes + 4) return messages
      const end = typeBytes + rest.readUInt32BE(typeBytes)
      if (rest.length < end) return messages
      const type = rest.toString('latin1', 0, typeBytes)
      messages.push({ type, bytes: rest.subarray(0, end) })
      rest = rest.subarray(end)
      isFirst = false
    }
  }
}
