import { Card, Facts, Time } from '../../platform/html/components.tsx'
import type { ReceivedMessage } from '../../transactions/read-messages.ts'
import { TEXTS } from '../texts/en.ts'

const { sections, messages: texts } = TEXTS.story

/** What the gateway sent, as it was received, folded away. */
export function Messages({ messages }: { messages: readonly ReceivedMessage[] }) {
  return (
    <Card title={sections.messages} note={sections.messagesNote}>
      {messages.length === 0 ? <p>{sections.noMessages}</p> : null}
      {messages.map((message) => (
        <details id={`message-${message.type}-${message.id}`}>
          <summary>
            {texts[message.type]} · <Time iso={message.at} />
          </summary>
          <Body message={message} />
        </details>
      ))}
    </Card>
  )
}

function Body({ message: { members, text } }: { message: ReceivedMessage }) {
  if (members !== undefined) return <Facts rows={members.map(({ name, value }) => [name, value])} />
  return text === '' ? <p>{texts.empty}</p> : <pre>{text}</pre>
}
