import type { Child } from 'hono/jsx'
import { showTransaction, type TransactionView } from '../../transactions/view.ts'
import type { ConsoleContext } from '../context.ts'
import type { MayRelease } from './hold.tsx'
import { nameHeld, type Story } from './load-story.ts'
import { Payments } from './payments.tsx'
import { Refunds } from './refunds.tsx'
import {
  Discrepancies,
  ExternalRefunds,
  Messages,
  Requests,
  SameOrder,
  Webhooks,
} from './sections.tsx'
import { Summary } from './summary.tsx'
import { Timeline } from './timeline.tsx'

export type StoryProps = {
  ctx: ConsoleContext
  story: Story
  cursor: string | undefined
}

/** The parts of the page about a transaction, each of which is replaced by itself when it changes. */
export function StoryParts({ ctx, story, cursor }: StoryProps) {
  const { accountHold, refunds, sameOrder } = story
  const shown = showTransaction(story.found)
  const mayRelease: MayRelease = (target, id) => story.mayRelease.get(nameHeld(target, id))
  const isHeld = (paymentId: string) => accountHold !== null || holds(shown, paymentId)
  return (
    <>
      <Part name="state" announce>
        <Summary story={story} shown={shown} />
      </Part>
      <Part name="payments">
        <Payments {...{ accountHold, mayRelease }} payments={shown.payments} />
      </Part>
      <Part name="refunds">
        <Refunds {...{ ctx, refunds, isHeld, mayRelease }} />
        <ExternalRefunds rows={refunds?.external ?? []} />
      </Part>
      <Part name="discrepancies">
        <Discrepancies rows={story.discrepancies} />
      </Part>
      <Part name="timeline">
        <Timeline story={story} cursor={cursor} />
      </Part>
      <Part name="requests">
        <Requests requests={story.requests} />
      </Part>
      <Part name="order">
        <SameOrder orderId={shown.orderId} others={sameOrder} />
      </Part>
      <Part name="webhooks">
        <Webhooks webhooks={story.webhooks} />
      </Part>
      <Part name="messages">
        <Messages messages={story.messages} />
      </Part>
    </>
  )
}

/** A part that the script replaces; of an announced one it reads the heading aloud when that changes. */
function Part(props: { name: string; announce?: boolean; children: Child }) {
  const { name, announce = false, children } = props
  return (
    <div id={`part-${name}`} data-live={announce ? 'announce' : ''} tabindex={-1}>
      {children}
    </div>
  )
}

function holds({ payments }: TransactionView, paymentId: string): boolean {
  return payments.some(({ id, hold }) => id === paymentId && hold !== null)
}
