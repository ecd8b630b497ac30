import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect } from 'vitest'

/** Writes into a file until its disk is full. */
export async function fillDisk(file: string): Promise<void> {
  const bytes = function* () {
    for (;;) yield Buffer.alloc(4_096)
  }
  await expect(pipeline(Readable.from(bytes()), createWriteStream(file))).rejects.toThrow('ENOSPC')
}
