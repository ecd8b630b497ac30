import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))
const Answer = z.object({ index: z.number(), fault: z.string().nullable(), tookMs: z.number() })

/** @returns what a row's tests showed, in the order in which the rows end */
export type Answer = z.infer<typeof Answer>

/**
 * Plays rows in one process per copy of the project. Each takes the next row when it has ended one.
 * @param roots the copies
 * @param indexes the rows, by their place in the ledger
 */
export async function playInWorkers(
  roots: readonly string[],
  indexes: readonly number[],
  databaseUrl: string,
  onAnswer: (answer: Answer) => void,
): Promise<void> {
  const queue = [...indexes]
  await Promise.all(
    roots.map(async (root) => {
      const child = fork(WORKER, [root], {
        env: { ...process.env, TEST_DATABASE_URL: databaseUrl },
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      for (let index = queue.shift(); index !== undefined; index = queue.shift()) {
        onAnswer(await ask(child, index))
      }
      await end(child)
    }),
  )
}

async function ask(child: ChildProcess, index: number): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const onExit = () => reject(new Error(`the worker ended while it played row ${index}`))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(Answer.parse(message))
    })
    child.send({ index })
  })
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.disconnect()
  await ended
}
